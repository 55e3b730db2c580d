// Files that must survive a power cut: written beside, flushed, renamed, and the folder flushed.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'

export type Mode = 0o600 | 0o644 | 0o640

export type Owner = { readonly uid: number; readonly gid: number }

/** Replaces `file` in one step: after a crash the old or the new content is there, whole. `owner`: null is who writes it. */
export const replaceFile = (
  file: string,
  content: string | Uint8Array,
  mode: Mode,
  owner: Owner | null = null,
): void => {
  const beside = `${file}.new`
  // A file of this name was left by a crash or by another user: it is never written into, nor followed.
  fs.rmSync(beside, { force: true })
  try {
    writeNew(beside, content, mode, owner)
    fs.renameSync(beside, file)
  } catch (error) {
    // Half a file may be half a key, and takes room on a disk that is perhaps full.
    removeIfPossible(beside)
    throw error
  }
  flushFolder(path.dirname(file))
}

const writeNew = (file: string, content: string | Uint8Array, mode: Mode, owner: Owner | null): void => {
  const fd = fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, mode)
  try {
    fs.fchmodSync(fd, mode)
    // By descriptor, never by name: a user who may write in that folder could replace the file.
    if (owner !== null) fs.fchownSync(fd, owner.uid, owner.gid)
    fs.writeFileSync(fd, content)
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

const removeIfPossible = (file: string): void => {
  try {
    fs.rmSync(file, { force: true })
  } catch {
    // The next replacement of the file tries again.
  }
}

/** Null when there is none; any other trouble is thrown. */
export const readFileIfAny = (file: string): string | null => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    throw error
  }
}

/** As `readFileIfAny`, and `too-long` for a longer file, of which no more than that is read. `links`: of the last segment. */
export const readShortFile = (
  file: string,
  longest: number,
  links: 'followed' | 'refused' = 'followed',
): { readonly text: string } | null | 'too-long' => {
  try {
    const fd = fs.openSync(file, fs.constants.O_RDONLY | (links === 'refused' ? fs.constants.O_NOFOLLOW : 0))
    try {
      return readShort(fd, longest)
    } finally {
      fs.closeSync(fd)
    }
  } catch (error) {
    if (errno(error) === 'ENOENT') return null
    throw error
  }
}

/** As `readShortFile`, of a file that is open. */
export const readShort = (fd: number, longest: number): { readonly text: string } | 'too-long' => {
  const content = Buffer.alloc(longest + 1)
  let length = 0
  for (let more = -1; more !== 0; length += more) {
    more = fs.readSync(fd, content, length, content.length - length, null)
  }
  return length > longest ? 'too-long' : { text: content.toString('utf8', 0, length) }
}

/**
 * With those above it, and nothing to do where it is there. Not by `recursive`: that tries for ever in a folder that takes no other, as
 * /proc does, and says ENOENT where the file system is read-only.
 */
export const makeFolder = (folder: string, mode: 0o700 | 0o755): void => {
  try {
    fs.mkdirSync(folder, { mode })
  } catch (error) {
    const code = errno(error)
    // EISDIR: some systems say that of `/`.
    if ((code === 'EEXIST' || code === 'EISDIR') && folderIsThere(folder)) return
    const above = path.dirname(folder)
    if (code !== 'ENOENT' || folderIsThere(above)) throw error
    makeFolder(above, mode)
    makeFolder(folder, mode)
  }
}

/** A link that leads to one is one. */
const folderIsThere = (folder: string): boolean => {
  try {
    return fs.statSync(folder).isDirectory()
  } catch {
    return false
  }
}

/** Lets every user go through the folder to what is in it, without listing it. */
export const letPass = (folder: string): void => {
  const mode = fs.statSync(folder).mode & 0o7777
  if ((mode & 0o011) !== 0o011) fs.chmodSync(folder, mode | 0o011)
}

/** Lets every user who comes to the file read it. */
export const letRead = (file: string): void => fs.chmodSync(file, 0o644)

export const removeFile = (file: string): void => {
  fs.rmSync(file, { force: true })
  flushFolder(path.dirname(file))
}

export const flushFolder = (folder: string): void => {
  const fd = fs.openSync(folder, fs.constants.O_RDONLY)
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

export const errno = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null

/** Whether its group or everybody may read it. */
export const othersMayRead = (file: string): boolean => (fs.statSync(file).mode & 0o044) !== 0

export const mayBeReadBy = (file: string, whom: 'group' | 'everybody'): boolean =>
  (fs.statSync(file).mode & (whom === 'group' ? 0o040 : 0o004)) !== 0

/** In bytes; 0 where there is none. */
export const sizeOf = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** When it was written last; 0 where there is none. */
export const changedMs = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

/**
 * Throws EACCES or EPERM where this user may not read and write the file. It opens the file, so it is not for one on which
 * this process holds locks.
 */
export const requireAccess = (file: string): void => {
  try {
    fs.closeSync(fs.openSync(file, fs.constants.O_RDWR))
  } catch (error) {
    if (['EACCES', 'EPERM'].includes(errno(error) ?? '')) throw error
  }
}

/** A file that root writes into a user's folder belongs to that user, who could not read it otherwise. Null: not root. */
export const ownerForFolder = (folder: string): Owner | null => (process.geteuid?.() === 0 ? fs.statSync(folder) : null)

/** Who may read what root writes there, in addition to root: the group of a folder that others cannot enter. Null: no one. */
export const groupForFolder = (folder: string): Owner | null => {
  if (process.geteuid?.() !== 0) return null
  const { mode, gid } = fs.statSync(folder)
  return (mode & 0o007) === 0 && gid !== 0 ? { uid: 0, gid } : null
}

/** Whom this process runs as. */
export const processOwner = (): Owner => ({ uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 })

/** Its name; a number where it has none. */
export const userName = (): string => {
  try {
    return os.userInfo().username
  } catch {
    return String(processOwner().uid)
  }
}
