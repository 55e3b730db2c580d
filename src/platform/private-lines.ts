// A file of secrets that grows by whole lines. It is for its owner only, is never reached through a symbolic link, and what was appended
// survives a crash.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, processOwner } from './files.ts'
import { flockFile } from './flock.ts'

export type PrivateLines = {
  /** Those that were there when it was opened. */
  readonly lines: readonly string[]
  /** `text` ends with a newline. It is on the disk when this returns, and nothing of it is in the file when this throws. */
  append(text: string): void
  close(): void
}

export type LinesFault =
  | 'is a symbolic link'
  | 'is not a file'
  | 'belongs to another user'
  | 'can be read by others'
  | 'is too long'
  | 'is in use'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = fs.constants

/**
 * Makes the file where there is none. A last line that was cut off is removed: it was never reported. Only one process at a time has it,
 * where `flock` is installed and the file system has locks; elsewhere nothing keeps two from appending to it.
 */
export const openPrivateLines = (file: string, longest: number): PrivateLines | LinesFault => {
  const fd = openOwn(file)
  if (typeof fd === 'string') return fd
  const fault = faultOf(fs.fstatSync(fd), longest) ?? (flockFile(fd) === 'taken' ? 'is in use' : null)
  if (fault !== null) {
    fs.closeSync(fd)
    return fault
  }
  const text = fs.readFileSync(fd, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole !== text) {
    fs.ftruncateSync(fd, Buffer.byteLength(whole))
    fs.fsyncSync(fd)
  }
  return {
    lines: whole === '' ? [] : whole.slice(0, -1).split('\n'),
    append: appendTo(fd),
    close: () => fs.closeSync(fd),
  }
}

const appendTo = (fd: number): ((text: string) => void) => {
  let endsInPart = false
  return (text) => {
    if (endsInPart) throw new Error('the file ends in part of a line, and another one would be joined to it')
    const { size } = fs.fstatSync(fd)
    try {
      fs.writeFileSync(fd, text)
      fs.fdatasyncSync(fd)
    } catch (error) {
      // A full disk takes part of a line. The next one would continue it, and the file could not be read again.
      endsInPart = !wasCut(fd, size)
      throw error
    }
  }
}

const wasCut = (fd: number, length: number): boolean => {
  try {
    fs.ftruncateSync(fd, length)
    return true
  } catch {
    return false
  }
}

const openOwn = (file: string): number | LinesFault => {
  try {
    const fd = fs.openSync(file, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    fs.fchmodSync(fd, 0o600)
    flushFolder(path.dirname(file))
    return fd
  } catch (error) {
    if (errno(error) !== 'EEXIST') throw error
  }
  try {
    // A pipe must not keep it waiting.
    return fs.openSync(file, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    if (errno(error) === 'ELOOP') return 'is a symbolic link'
    if (errno(error) === 'EISDIR' || errno(error) === 'ENXIO') return 'is not a file'
    throw error
  }
}

const faultOf = (stats: fs.Stats, longest: number): LinesFault | null => {
  if (!stats.isFile()) return 'is not a file'
  if (stats.uid !== processOwner().uid) return 'belongs to another user'
  if ((stats.mode & 0o7777) !== 0o600) return 'can be read by others'
  return stats.size > longest ? 'is too long' : null
}
