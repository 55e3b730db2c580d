// The file of `node enroll --batch CSV --tokens FILE`: a line for each node, with the join string that lets its machine in. Its first line
// names the batch, by which the plane finds tokens that it has committed and whose answer never came here; a line for each attempt lets
// it tell a call that was delayed from one that came later.

import { parseIsoTime } from '#platform/clock.ts'
import { errno } from '#platform/files.ts'
import { openPrivateLines, type LinesFault, type PrivateLines } from '#platform/private-lines.ts'
import { sortableId } from '#platform/random.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'

export type IssuedToken = { readonly id: string; readonly expiresAt: string; readonly join: string }

export type TokensFile = {
  readonly batch: string
  /** Of several lines for a node the last one counts. */
  readonly held: ReadonlyMap<string, IssuedToken>
  /** Higher than any before it in this file, where it is on the disk when this returns. */
  nextAttempt(): number
  /** They are on the disk when this returns. */
  append(tokens: readonly IssuedToken[]): void
  close(): void
}

const header = /^# muster tokens 1 ([0-9A-Z]{26})$/
const attemptLine = /^# attempt ([1-9][0-9]{0,14})$/
const columns = '# node, expiry, join string; a join string is a secret that lets one machine in'
/** 100,000 tokens have 40 MB. */
const longestFile = 256 * 1024 * 1024

export const openTokensFile = (cli: Cli, file: string): TokensFile => {
  const lines = open(file)
  if (typeof lines === 'string') throw refused(file, lines)
  try {
    const [first, ...rest] = lines.lines
    const batch = first === undefined ? sortableId(cli.clock.nowMs(), cli.random) : header.exec(first)?.[1]
    if (batch === undefined) throw notOurs(file, 1)
    const held = new Map<string, IssuedToken>()
    let attempt = 0
    rest.forEach((line, at) => {
      attempt = Math.max(attempt, Number(attemptLine.exec(line)?.[1] ?? 0))
      if (line.startsWith('#')) return
      const token = parseLine(line)
      if (token === null) throw notOurs(file, at + 2)
      held.set(token.id, token)
    })
    if (first === undefined) lines.append(`# muster tokens 1 ${batch}\n${columns}\n`)
    return {
      batch,
      held,
      nextAttempt() {
        write(file, () => lines.append(`# attempt ${++attempt}\n`))
        return attempt
      },
      append(tokens) {
        if (tokens.length > 0) write(file, () => lines.append(tokens.map(lineOf).join('')))
      },
      close: () => lines.close(),
    }
  } catch (error) {
    lines.close()
    throw error
  }
}

const open = (file: string): PrivateLines | LinesFault => {
  try {
    return openPrivateLines(file, longestFile)
  } catch (error) {
    throw usageFailure(`${file} cannot be opened: ${errno(error) ?? 'unknown trouble'}.`)
  }
}

/** Separated by tabs: a join string has commas, and no spaces. */
const lineOf = ({ id, expiresAt, join }: IssuedToken): string => `${id}\t${expiresAt}\t${join}\n`

const parseLine = (line: string): IssuedToken | null => {
  const [id = '', expiresAt = '', join = '', ...rest] = line.split('\t')
  const fits = rest.length === 0 && isWritable({ id, expiresAt, join })
  return fits ? { id, expiresAt, join } : null
}

/** What a plane answered is written only if it can be read again. */
export const isWritable = ({ id, expiresAt, join }: IssuedToken): boolean =>
  new RegExp(nodeIdShape).test(id) &&
  /^[0-9TZ:.+-]+$/.test(expiresAt) &&
  parseIsoTime(expiresAt) !== null &&
  /^[\x21-\x7e]+$/.test(join) &&
  parseJoinString(join) !== null

const write = (file: string, append: () => void): void => {
  try {
    append()
  } catch (error) {
    throw new Failure({
      exit: exitCodes.fault,
      code: 'FILE_NOT_WRITTEN',
      sentence: `${file} cannot be written: ${errno(error) ?? 'unknown trouble'}. Tokens that are not in it are lost.`,
      next: 'Make room for it, and run the same command again: it withdraws the lost tokens and makes new ones',
    })
  }
}

const refused = (file: string, fault: LinesFault): Failure => {
  const next: Readonly<Record<LinesFault, string>> = {
    'is a symbolic link': 'Name the file itself, or another one',
    'is not a file': 'Name a file that is not there yet',
    'belongs to another user': 'Name a file of your own, or one that is not there yet',
    'can be read by others': `Its rights have to be 0600: chmod 600 ${shellWord(file)}; or name a file that is not there yet`,
    'is too long': 'Name a file that is not there yet',
    'is in use': 'Wait until the other muster node enroll has ended',
  }
  return usageFailure(`${file} ${fault}: no secret is written to it.`, next[fault])
}

const notOurs = (file: string, line: number): Failure =>
  usageFailure(
    `Line ${line} of ${file} is not of a file of tokens: nothing is appended to it.`,
    'Name a file that is not there yet',
  )
