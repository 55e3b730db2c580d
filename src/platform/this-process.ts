// Which process this is: its release, its user, its name and what the system lets it do.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { isSea } from 'node:sea'
import { readFileIfAny } from './files.ts'
import packageJson from '../../package.json' with { type: 'json' }

export const musterVersion: string = packageJson.version

/** The user that runs this process, as the system knows it. */
export const userName = (): string => os.userInfo().username

/** The same for a record of who did something: a user without a name, as in many containers, is named by number. */
export const callerName = (): string => {
  try {
    return userName()
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}

/** Which process this is, for people who have several machines. */
export const processName = (): string => `${os.hostname()} ${process.pid}`

/** Where its executable lies: Node's, unless Node is part of it. */
export const programFolder = (): string => path.dirname(process.execPath)

/** Besides its own output: a terminal, a pipe. */
const ofOutput: ReadonlySet<string> = new Set(['TTYWrap', 'PipeWrap'])

/** Where nothing is left to do. Node would take the process down piece by piece, which is a tenth of what a command takes. */
export const endIfIdle = (): void => {
  if (process.getActiveResourcesInfo().every((kind) => ofOutput.has(kind))) process.exit()
}

/**
 * How a reader calls this program: `./muster` where that is it, elsewhere by its name. A reader pastes what a command says, perhaps as
 * root, and another file of that name may be one that some user has put there to be run.
 */
export const programName = (): './muster' | 'muster' => {
  const here = fs.lstatSync('./muster', { throwIfNoEntry: false })
  if (here === undefined) return 'muster'
  return (isSea() ? isExecutable(here) : isOfRootOrUs(here)) ? './muster' : 'muster'
}

const isExecutable = ({ dev, ino }: fs.Stats): boolean => {
  const own = fs.statSync(process.execPath, { throwIfNoEntry: false })
  return dev === own?.dev && ino === own.ino
}

/** From the sources: which file has started it is not known. */
const isOfRootOrUs = ({ uid }: fs.Stats): boolean => uid === 0 || uid === process.geteuid?.()

/** The addresses of this machine, as the system spells them. */
export const ownAddresses = (): readonly string[] =>
  Object.values(os.networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))

/** How many processors this process may use. */
export const processors = (): number => os.availableParallelism()

/** How many files this process may have open; 1024 where the system does not say. */
export const openFileLimit = (): number => {
  const line = readFileIfAny('/proc/self/limits')?.match(/^Max open files\s+(\d+|unlimited)/m)
  if (line?.[1] === 'unlimited') return 1_048_576
  return line?.[1] === undefined ? 1024 : Number(line[1])
}
