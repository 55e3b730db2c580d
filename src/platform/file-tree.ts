// A set of files that is there whole or not at all: written into a folder of its own, flushed, and then pointed at by a link
// that one rename replaces.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder } from './files.ts'

export type TreeFile = {
  /** Relative, of plain segments. */
  readonly path: string
  readonly mode: number
  readonly content: string
}

/**
 * Durable when it returns. `folder` must not be there yet: nothing that is there already is written into or followed.
 * A call that throws may leave a part of it behind. `wrote` is called for every file.
 */
export const writeTree = (folder: string, files: readonly TreeFile[], wrote: () => void): void => {
  const folders = new Set([folder])
  makeOpenFolder(folder)
  for (const file of files) {
    for (const above of foldersOf(file.path)) {
      const place = path.join(folder, above)
      if (folders.has(place)) continue
      makeOpenFolder(place)
      folders.add(place)
    }
    writeFile(path.join(folder, file.path), file)
    wrote()
  }
  for (const place of folders) flushFolder(place)
  flushFolder(path.dirname(folder))
}

/** Whatever the umask is: who may read a file is said by the mode of the file. */
const makeOpenFolder = (folder: string): void => {
  fs.mkdirSync(folder)
  fs.chmodSync(folder, 0o755)
}

/** `a/b/c`: a, a/b. */
const foldersOf = (file: string): readonly string[] => {
  const segments = file.split('/').slice(0, -1)
  return segments.map((_, at) => segments.slice(0, at + 1).join('/'))
}

const writeFile = (place: string, { content, mode }: TreeFile): void => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  const fd = fs.openSync(place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    fs.writeFileSync(fd, content)
    fs.fchmodSync(fd, mode)
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Afterwards `link` leads to `target`; a crash leaves the old or the new link. `made` is called before the rename. */
export const switchLink = (link: string, target: string, made: () => void): void => {
  const beside = `${link}.new`
  fs.rmSync(beside, { recursive: true, force: true })
  // A rename does not replace a folder, so a foreign folder of that name is removed first.
  if (fs.lstatSync(link, { throwIfNoEntry: false })?.isDirectory() === true) fs.rmSync(link, { recursive: true })
  fs.symlinkSync(target, beside)
  made()
  fs.renameSync(beside, link)
  flushFolder(path.dirname(link))
}

/** Null where there is none, or something that is no link. */
export const linkTarget = (link: string): string | null => {
  try {
    return fs.readlinkSync(link)
  } catch (error) {
    if (errno(error) === 'ENOENT' || errno(error) === 'EINVAL') return null
    throw error
  }
}

/** Never through a link. */
export const kindOfPlace = (place: string): 'folder' | 'missing' | 'other' => {
  const stats = fs.lstatSync(place, { throwIfNoEntry: false })
  if (stats === undefined) return 'missing'
  return stats.isDirectory() ? 'folder' : 'other'
}

export type Difference = 'missing' | 'changed' | 'mode' | 'not a file' | 'unreadable'

/** How a file in `folder` differs from what was written there; null: it does not. A link is no file. */
export const differenceOf = (folder: string, file: TreeFile): Difference | null => {
  try {
    const place = path.join(fs.realpathSync(folder), file.path)
    if (fs.realpathSync(place) !== place) return 'not a file'
    const stats = fs.lstatSync(place)
    if (!stats.isFile()) return 'not a file'
    // By its length first: what took its place may be of any.
    if (stats.size !== Buffer.byteLength(file.content) || hashOf(fs.readFileSync(place)) !== hashOf(file.content))
      return 'changed'
    return (stats.mode & 0o7777) === file.mode ? null : 'mode'
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'missing'
    if (code === 'ELOOP') return 'not a file'
    if (code === 'EACCES') return 'unreadable'
    throw error
  }
}

const hashOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

export type ReadTree =
  | { readonly kind: 'read'; readonly files: readonly TreeFile[] }
  /** `file`: which. */
  | { readonly kind: 'unfit'; readonly file: string; readonly why: string }

/**
 * Every file below a folder, sorted, as text. Its mode is 0755 where its owner may run it and 0644 elsewhere, as version control
 * keeps it. Nothing is followed, and of more than that many files or bytes nothing is read.
 */
export const readTree = (folder: string, most: { readonly files: number; readonly bytes: number }): ReadTree => {
  const files: TreeFile[] = []
  let bytes = 0
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue
    const place = path.join(entry.parentPath, entry.name)
    const file = path.relative(folder, place)
    if (!entry.isFile()) return { kind: 'unfit', file, why: 'is a link or no file' }
    const { size, mode } = fs.lstatSync(place)
    bytes += size
    if (files.length === most.files) return { kind: 'unfit', file, why: `is more than ${most.files} files` }
    if (bytes > most.bytes) return { kind: 'unfit', file, why: `makes them more than ${most.bytes} bytes` }
    const content = textOf(fs.readFileSync(place))
    if (content === null) return { kind: 'unfit', file, why: 'is not UTF-8 text' }
    files.push({ path: file, mode: (mode & 0o100) === 0 ? 0o644 : 0o755, content })
  }
  return { kind: 'read', files: files.toSorted((one, other) => (one.path < other.path ? -1 : 1)) }
}

const textOf = (bytes: Uint8Array): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}
