// Files that programs read as one: each generation of them is a folder of its own, and a link that one rename replaces leads to
// the newest. A reader that resolves the link once reads one generation, whatever is written meanwhile.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, processOwner, readShortFile, type Owner } from './files.ts'

export type GenerationFile = {
  /** One plain segment. */
  readonly name: string
  readonly mode: number
  /** Null: who writes it. */
  readonly owner: Owner | null
  readonly content: string | Uint8Array
}

/** A foreign file, folder or link has the name of the link. It is never replaced. */
export class PlaceIsTaken extends Error {
  constructor(name: string) {
    super(`${name} is there already and was not written by Muster: remove it, or use another directory`)
  }
}

/**
 * `in-doubt`: the files are in place, and the disk has not confirmed it, so that a power cut may bring the generation before back.
 * Written again, they are durable as soon as the disk works.
 */
export type Replaced = 'durable' | 'in-doubt'

/**
 * Afterwards `directory/name` is a link to a folder that holds exactly these files; a crash leaves the generation before or the new
 * one. What it throws leaves the generation before in place. `name` has no dots. `directory` may be `/proc/self/fd/N` of one that is
 * open. It must be writable for no other user. Three generations before stay, for readers that have resolved the link: a new
 * certificate and the list that revokes an old one come within a second of each other. Older ones are removed, and what a crash
 * left, and every one whose files can be read by a user who may not read the new ones. While the disk confirms nothing no more than a
 * few pile up: then it throws. `passed` is called after every step, for tests of what a crash or a failure there leaves.
 */
export const replaceGeneration = (
  directory: string,
  name: string,
  files: readonly GenerationFile[],
  passed: () => void = () => {},
): Replaced => {
  const before = currentGeneration(directory, name)
  if (ours(directory, name).length >= mostInDoubt) {
    flushFolder(directory)
    removeOthers(directory, name, [before], () => {})
  }
  const next = `${prefixOf(name)}${1 + Math.max(0, ...numbersIn(directory, name))}`
  const folder = path.join(directory, next)
  const link = path.join(directory, `${next}.link`)
  fs.mkdirSync(folder, { mode: 0o700 })
  passed()
  try {
    for (const file of files) {
      writeNew(path.join(folder, file.name), file)
      passed()
    }
    // Open to readers once it is whole, which distinguishes it from what a crash left.
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
  try {
    passed()
    flushFolder(directory)
  } catch {
    // Nothing is removed: on the disk the link may lead to any generation before.
    return 'in-doubt'
  }
  const whole = ours(directory, name).filter((entry) => entry !== next && isWhole(path.join(directory, entry)))
  const newestFirst = whole.toSorted((a, b) => (numberOf(name, b) ?? 0) - (numberOf(name, a) ?? 0))
  const kept = new Set([before, ...newestFirst.slice(0, keptBefore)])
  const readable = [...kept].filter((entry) => entry !== null && isAsClosed(path.join(directory, entry), folder))
  removeOthers(directory, name, [next, ...readable], passed)
  return 'durable'
}

const keptBefore = 3
/** While the disk confirms no rename every generation since may be the one that the link leads to after a power cut. */
const mostInDoubt = 16

/** Whether every file of the older generation can be read only by those who can read the file of that name in the newer one. */
const isAsClosed = (older: string, newer: string): boolean => {
  try {
    return fs.readdirSync(older).every((name) => {
      const [was, is] = [older, newer].map((folder) => fs.lstatSync(path.join(folder, name)))
      return was?.uid === is?.uid && was?.gid === is?.gid && ((was?.mode ?? 0) & ~(is?.mode ?? 0) & 0o777) === 0
    })
  } catch {
    // It has a file that the newer one has not, or cannot be looked at: it does not stay.
    return false
  }
}

const isWhole = (place: string): boolean => {
  const stats = fs.lstatSync(place, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && (stats.mode & 0o777) === 0o755
}

/** Nothing of ours is left of the name: neither the link nor a generation. Also where there is none. What is foreign stays. */
export const removeGenerations = (directory: string, name: string): void => {
  if (!fs.existsSync(directory)) return
  if (linkTarget(directory, name) !== null) {
    fs.unlinkSync(path.join(directory, name))
    flushFolder(directory)
  }
  removeOthers(directory, name, [], () => {})
  const left = ours(directory, name)
  if (left.length > 0) throw new Error(`${left.join(', ')} cannot be removed`)
}

/** Whether anything there could be of the name, as far as names tell. Throws where the directory cannot be read, or is missing. */
export const hasGenerations = (directory: string, name: string): boolean =>
  fs.readdirSync(directory).some((entry) => entry === name || numberOf(name, entry) !== null)

/** The names that have generations there, of whatever user. None where the directory cannot be read, or is missing. */
export const namesOfGenerations = (directory: string): readonly string[] => {
  try {
    const names = fs.readdirSync(directory).flatMap((entry) => nameOf(entry) ?? [])
    return [...new Set(names)].sort()
  } catch {
    return []
  }
}

export type FileOfGeneration = {
  readonly name: string
  /** Whether the link of the name leads to this generation. */
  readonly isCurrent: boolean
  readonly text: string
}

/**
 * That file of every whole generation there that has it, of whatever name and user. None where the directory is missing; throws
 * where it cannot be read.
 */
export const fileOfGenerations = (directory: string, file: string, longest: number): readonly FileOfGeneration[] =>
  entriesIn(directory).flatMap((entry) => {
    const name = nameOf(entry)
    const place = path.join(directory, entry, file)
    if (name === null || !isWhole(path.join(directory, entry)) || !isFile(place)) return []
    const read = readShortFile(place, longest, 'refused')
    if (read === null || read === 'too-long') return []
    return [{ name, isCurrent: linkTarget(directory, name) === entry, text: read.text }]
  })

const entriesIn = (directory: string): readonly string[] => {
  try {
    return fs.readdirSync(directory).sort()
  } catch (error) {
    if (errno(error) === 'ENOENT') return []
    throw error
  }
}

const isFile = (place: string): boolean => fs.lstatSync(place, { throwIfNoEntry: false })?.isFile() === true

/** Of the folder of a generation; null: it is none. */
const nameOf = (entry: string): string | null => /^\.muster\.([^.]+)\.\d+$/.exec(entry)?.[1] ?? null

/** The folder that the link leads to; null: there is none. Throws for what is no link of ours. */
const currentGeneration = (directory: string, name: string): string | null => {
  const target = linkTarget(directory, name)
  if (target === null && fs.lstatSync(path.join(directory, name), { throwIfNoEntry: false }) !== undefined)
    throw new PlaceIsTaken(name)
  return target
}

/** Null: there is none, or something that is no link of ours. */
const linkTarget = (directory: string, name: string): string | null => {
  try {
    const target = fs.readlinkSync(path.join(directory, name))
    return isFolderName(name, target) ? target : null
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes(errno(error) ?? '')) return null
    throw error
  }
}

const writeNew = (place: string, { content, mode, owner }: GenerationFile): void => {
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

/** Folders of generations, and links that a crash left: of this user, and of the type that their names say. */
const ours = (directory: string, name: string): string[] => {
  const { uid } = processOwner()
  return fs.readdirSync(directory).filter((entry) => {
    if (numberOf(name, entry) === null) return false
    const found = fs.lstatSync(path.join(directory, entry), { throwIfNoEntry: false })
    if (found?.uid !== uid) return false
    return isFolderName(name, entry)
      ? found.isDirectory()
      : found.isSymbolicLink() && `${fs.readlinkSync(path.join(directory, entry))}${linkEnd}` === entry
  })
}

/** Also of what is not ours: the next number is that of nothing there. */
const numbersIn = (directory: string, name: string): number[] =>
  fs.readdirSync(directory).flatMap((entry) => numberOf(name, entry) ?? [])

/** `.muster.web.7`, and `.muster.web.7.link`, which is renamed to `web`. Nobody else names files so. */
const prefixOf = (name: string): string => `.muster.${name}.`
const linkEnd = '.link'

const isFolderName = (name: string, entry: string): boolean =>
  numberOf(name, entry) !== null && !entry.endsWith(linkEnd)

const numberOf = (name: string, entry: string): number | null => {
  if (!entry.startsWith(prefixOf(name))) return null
  const digits = entry.slice(prefixOf(name).length).replace(/\.link$/, '')
  return /^[1-9]\d{0,14}$/.test(digits) ? Number(digits) : null
}
