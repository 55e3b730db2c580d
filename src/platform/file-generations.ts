// Files that programs read as one: each generation of them is a folder of its own, and a link that one rename replaces leads to
// the newest. A reader that resolves the link once reads one generation, whatever is written meanwhile.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, type Owner } from './files.ts'

export type GenerationFile = {
  /** One plain segment. */
  readonly name: string
  readonly mode: number
  readonly content: string | Uint8Array
}

/** A foreign file, folder or link has the name of the link. It is never replaced. */
export class PlaceIsTaken extends Error {
  constructor(name: string) {
    super(`${name} is there already and was not written by Muster: remove it, or use another directory`)
  }
}

/**
 * Afterwards `directory/name` is a link to a folder that holds exactly these files. Durable when it returns; a crash leaves the
 * generation before or the new one. `directory` may be `/proc/self/fd/N` of one that is open. It must be writable for no other
 * user. Three generations before stay, for readers that have resolved the link: a new certificate and the list that revokes an old
 * one come within a second of each other. Older ones are removed, and what a crash left.
 * `owner`: null is who writes. `passed` is called after every step, for tests of what a crash leaves.
 */
export const replaceGeneration = (
  directory: string,
  name: string,
  files: readonly GenerationFile[],
  owner: Owner | null,
  passed: () => void = () => {},
): void => {
  const before = currentGeneration(directory, name)
  const next = `.${name}.${1 + Math.max(0, ...numbersIn(directory, name))}`
  const folder = path.join(directory, next)
  const link = path.join(directory, `${next}.link`)
  fs.mkdirSync(folder, { mode: 0o700 })
  passed()
  try {
    for (const file of files) {
      writeNew(path.join(folder, file.name), file, owner)
      passed()
    }
    // Open to readers once it is whole, by which it is told from what a crash left.
    fs.chmodSync(folder, 0o755)
    flushFolder(folder)
    flushFolder(directory)
    fs.symlinkSync(next, link)
    passed()
    fs.renameSync(link, path.join(directory, name))
  } catch (error) {
    // Half a generation may hold a key, and takes room on a disk that is perhaps full.
    removeLeftover(link)
    removeLeftover(folder)
    throw error
  }
  passed()
  flushFolder(directory)
  const whole = ours(directory, name).filter((entry) => entry !== next && isWhole(path.join(directory, entry)))
  const newestFirst = whole.toSorted((a, b) => (numberOf(name, b) ?? 0) - (numberOf(name, a) ?? 0))
  removeOthers(directory, name, [next, before, ...newestFirst.slice(0, keptBefore)], passed)
}

const keptBefore = 3

const isWhole = (place: string): boolean => {
  const stats = fs.lstatSync(place, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && (stats.mode & 0o777) === 0o755
}

/** Nothing of the name is left: neither the link nor a generation. Also where there is none. */
export const removeGenerations = (directory: string, name: string): void => {
  if (!fs.existsSync(directory)) return
  if (currentGeneration(directory, name) !== null) {
    fs.unlinkSync(path.join(directory, name))
    flushFolder(directory)
  }
  removeOthers(directory, name, [], () => {})
  const left = ours(directory, name)
  if (left.length > 0) throw new Error(`${left.join(', ')} cannot be removed`)
}

/** The folder that the link leads to; null: there is none. Throws for what is no link of ours. */
const currentGeneration = (directory: string, name: string): string | null => {
  try {
    const target = fs.readlinkSync(path.join(directory, name))
    if (numberOf(name, target) !== null) return target
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    if (errno(error) !== 'EINVAL') throw error
  }
  throw new PlaceIsTaken(name)
}

const writeNew = (place: string, { content, mode }: GenerationFile, owner: Owner | null): void => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  const fd = fs.openSync(place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    fs.writeFileSync(fd, content)
    // By descriptor, and the owner last: the mode of a file of another user can be changed with more rights only. No mode here has
    // a bit that a change of the owner clears.
    fs.fchmodSync(fd, mode)
    if (owner !== null) fs.fchownSync(fd, owner.uid, owner.gid)
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

const removeOthers = (directory: string, name: string, kept: readonly (string | null)[], passed: () => void): void => {
  for (const entry of ours(directory, name)) {
    if (kept.includes(entry)) continue
    removeLeftover(path.join(directory, entry))
    passed()
  }
}

/** What cannot be removed is tried again with the next generation. */
const removeLeftover = (place: string): void => {
  try {
    fs.rmSync(place, { recursive: true, force: true })
  } catch {
    // As above.
  }
}

/** `.web.7`, and `.web.7.link`, which a crash left. */
const ours = (directory: string, name: string): string[] =>
  fs.readdirSync(directory).filter((entry) => numberOf(name, entry.replace(/\.link$/, '')) !== null)

const numbersIn = (directory: string, name: string): number[] =>
  ours(directory, name).flatMap((entry) => numberOf(name, entry.replace(/\.link$/, '')) ?? [])

const numberOf = (name: string, entry: string): number | null => {
  if (!entry.startsWith(`.${name}.`)) return null
  const digits = entry.slice(name.length + 2)
  return /^[1-9]\d{0,14}$/.test(digits) ? Number(digits) : null
}
