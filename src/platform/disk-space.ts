// How much room a disk has, and space that is kept back on it.

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno } from './files.ts'

export type DiskSpace = { readonly availableBytes: number; readonly totalBytes: number }

/** What this user may still write there; null where the system does not say. A folder that is not there yet: its parent. */
export const diskSpace = (folder: string): DiskSpace | null => {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(folder)
    return { availableBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch (error) {
    const parent = path.dirname(folder)
    return errno(error) === 'ENOENT' && parent !== folder ? diskSpace(parent) : null
  }
}

/** The folder at which the file system of this one is mounted; the folder itself where nothing can be found out. */
export const mountPointOf = (folder: string): string => {
  const real = existing(path.resolve(folder))
  const device = deviceOf(real)
  let at = real
  while (device !== null && path.dirname(at) !== at && deviceOf(path.dirname(at)) === device) at = path.dirname(at)
  return at
}

const existing = (folder: string): string => {
  try {
    return fs.realpathSync(folder)
  } catch {
    const parent = path.dirname(folder)
    return parent === folder ? folder : existing(parent)
  }
}

const deviceOf = (folder: string): number | null => {
  try {
    return fs.statSync(folder).dev
  } catch {
    return null
  }
}

/** Why nothing can be written in a folder, as far as this shows without writing: EROFS, EACCES; null when it can. */
export const writeFaultOf = (folder: string): string | null => {
  try {
    fs.accessSync(folder, fs.constants.W_OK)
    return null
  } catch (error) {
    // A folder that is not there is made when it is needed.
    return errno(error) === 'ENOENT' ? null : errno(error)
  }
}

/** Bytes of a file that are really there, in blocks of the disk and not only in its length. */
export const allocatedBytes = (file: string): number => {
  try {
    const { size, blocks } = fs.statSync(file)
    return Math.min(size, blocks * 512)
  } catch {
    return 0
  }
}

/** Writes all of it and flushes it; what a full disk cut short is taken away again. */
export const allocateFile = (file: string, content: Uint8Array): void => {
  try {
    const fd = fs.openSync(file, 'w', 0o600)
    try {
      fs.writeFileSync(fd, content)
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
  } catch (error) {
    fs.rmSync(file, { force: true })
    throw error
  }
}

/** Gives back the room behind `bytes`, at once and for good. */
export const shortenFile = (file: string, bytes: number): void => {
  const fd = fs.openSync(file, 'r+')
  try {
    fs.ftruncateSync(fd, bytes)
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Makes it longer, or new, by bytes that really take room, and flushes them. What a full disk cut short stays. */
export const lengthenFile = (file: string, bytes: number): void => {
  const fd = fs.openSync(file, 'a', 0o600)
  try {
    fs.writeFileSync(fd, incompressible(bytes))
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** A file system that compresses would keep no room for zeros. Means nothing, so no test has to foresee it. */
export const incompressible = (bytes: number): Uint8Array => randomBytes(bytes)
