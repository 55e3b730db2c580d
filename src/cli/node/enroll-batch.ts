// `muster node enroll --batch`: registers every line of a file and, with --tokens, gets the token of each.

import { counted } from '#domain/core/in-words.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { readText } from '#cli/kit/arguments.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'
import { parseBatch } from './batch-file.ts'
import { registerAll, type BatchResult } from './enroll-lines.ts'
import { enrollWithTokens } from './enroll-tokens.ts'

type BatchOptions = GlobalOptions & {
  readonly profile?: string
  readonly tokens?: string
  readonly expires?: string
}

const longestFile = 32 * 1024 * 1024

export const nodeEnrollBatch = async (cli: Cli, options: BatchOptions, file: string): Promise<void> => {
  const lines = parseBatch(await readText(cli, file, longestFile), options.profile)
  const plane = connect(cli, options)
  const print = printer(cli, options)
  const done =
    options.tokens === undefined
      ? await registerAll(cli, plane, lines)
      : await enrollWithTokens({ cli, plane, note: print.note }, lines, options.tokens, options.expires)
  const count = (result: BatchResult['result']) => done.filter((one) => one.result === result).length
  print.answer({ results: done }, (paint) =>
    renderHeadedTable(['LINE', 'NODE', 'RESULT', 'DETAIL'], done.map(resultRow), paint),
  )
  const counts =
    options.tokens === undefined
      ? `${count('registered')} registered`
      : `${counted(count('issued'), 'token')} issued, ${count('held')} in ${options.tokens} already`
  print.note(`${done.length} lines: ${counts}, ${count('already there')} already there, ${count('failed')} failed`)
  if (count('failed') === 0) return
  const given = (['profile', 'tokens', 'expires'] as const).flatMap((name) => {
    const value = options[name]
    return value === undefined ? [] : [` --${name} ${shellWord(value)}`]
  })
  print.note(
    `next: correct the failed lines and run the same command again: muster node enroll --batch ${shellWord(file)}${given.join('')}`,
  )
  cli.exit.finish(exitCodes.partly)
}

const resultRow = (result: BatchResult): Cell[] => [
  String(result.line),
  result.id,
  { text: result.result, colour: result.result === 'failed' ? 'red' : 'plain' },
  [result.code ?? '', result.detail ?? ''].join(' ').trim(),
]
