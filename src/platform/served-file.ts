// A file that is handed out by its digest: opened once and read from then on, so that what is sent is what was digested, also where
// another file has taken its name.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { errno } from './files.ts'

export type ServedFile = {
  readonly bytes: number
  /** SHA-256 of its content, hex. */
  readonly sha256: string
  /** Changes with its content, its owner, its mode and its place. */
  readonly mark: string
  read(into: Buffer, from: number): Promise<number>
  /** False: it was written to since it was opened, so its digest may be wrong. */
  isUnchanged(): Promise<boolean>
  /** Null: it has been given up. Else it stays open until the function is called. */
  hold(): (() => void) | null
  /** Closes it as soon as it has no holder. */
  giveUp(): void
}

/** Which file has that name now, as `mark` says it; null: none. */
export const markOfFile = (file: string): string | null => {
  const stats = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? null : markOf(stats)
}

/** Null: only its owner, this user or root, can put files there. */
export const faultOfServedFolder = (folder: string): string | null => {
  const stats = fs.statSync(folder, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined || !stats.isDirectory()) return `${folder} is not a folder`
  return faultOfOwner(folder, stats)
}

/** `fault`: why it is not served, in a sentence. */
export const openServedFile = async (file: string): Promise<ServedFile | { readonly fault: string }> => {
  const opened = await openRegular(file)
  if (typeof opened === 'string') return { fault: opened }
  const { handle, stats } = opened
  try {
    const sha256 = await digestOfUnchanged(handle, stats)
    if (sha256 !== null) return serve(handle, stats, sha256)
    close(handle)
    return { fault: `${file} is being written: it is looked at again in a moment` }
  } catch (error) {
    close(handle)
    return { fault: unreadable(file, error) }
  }
}

/** Why a file is not served whose reading failed, in a sentence. */
export const unreadable = (file: string, error: unknown): string =>
  `${file} cannot be read: ${errno(error) ?? String(error)}`

/** Of any file; rejects where it cannot be read. */
export const sha256OfFile = async (file: string): Promise<string> => {
  const handle = await fs.promises.open(file, fs.constants.O_RDONLY)
  try {
    return (await digestOf(handle)).sha256
  } finally {
    await handle.close()
  }
}

type Opened = { readonly handle: fs.promises.FileHandle; readonly stats: fs.BigIntStats }

const openRegular = async (file: string): Promise<Opened | string> => {
  // Opening a pipe without a writer would wait for ever, and what a link leads to can be changed by others than the owner of
  // the link.
  const flags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK
  let handle: fs.promises.FileHandle | null = null
  try {
    handle = await fs.promises.open(file, flags)
    const stats = await handle.stat({ bigint: true })
    const fault = faultOf(file, stats)
    if (fault === null) return { handle, stats }
    close(handle)
    return fault
  } catch (error) {
    if (handle !== null) close(handle)
    return errno(error) === 'ELOOP' ? `${file} is a link: put the file itself there` : unreadable(file, error)
  }
}

/** Not waited for, and a failure is not reported: the descriptor is free also then, and nothing was written. */
const close = (handle: fs.promises.FileHandle): void => void handle.close().catch(() => {})

/** By the descriptor, so that what was judged is what is read. */
const faultOf = (file: string, stats: fs.BigIntStats): string | null => {
  if (!stats.isFile()) return `${file} is not a regular file`
  return faultOfOwner(file, stats)
}

const faultOfOwner = (place: string, stats: fs.BigIntStats): string | null => {
  if (stats.uid !== 0n && Number(stats.uid) !== process.geteuid?.())
    return `${place} belongs to user ${stats.uid}, neither to root nor to the user of the plane`
  if ((stats.mode & 0o022n) !== 0n) return `${place} can be written by other users than its owner: chmod go-w ${place}`
  return null
}

const markOf = ({ dev, ino, size, mode, uid, mtimeNs, ctimeNs }: fs.BigIntStats): string =>
  [dev, ino, size, mode, uid, mtimeNs, ctimeNs].join(' ')

/** In pieces, each of which is hashed in a fraction of a millisecond: nothing waits for it. */
const digestedAtOnce = 256 * 1024

/** And how many bytes that was. */
const digestOf = async (
  handle: fs.promises.FileHandle,
): Promise<{ readonly sha256: string; readonly bytes: number }> => {
  const hash = createHash('sha256')
  const piece = Buffer.allocUnsafeSlow(digestedAtOnce)
  for (let bytes = 0; ;) {
    const { bytesRead } = await handle.read(piece, 0, piece.length, bytes)
    if (bytesRead === 0) return { sha256: hash.digest('hex'), bytes }
    hash.update(piece.subarray(0, bytesRead))
    bytes += bytesRead
  }
}

/** Null: it is not, or no longer, the file of these stats. */
const digestOfUnchanged = async (handle: fs.promises.FileHandle, stats: fs.BigIntStats): Promise<string | null> => {
  const { sha256, bytes } = await digestOf(handle)
  if (bytes !== Number(stats.size)) return null
  return markOf(await handle.stat({ bigint: true })) === markOf(stats) ? sha256 : null
}

const serve = (handle: fs.promises.FileHandle, stats: fs.BigIntStats, sha256: string): ServedFile => {
  const mark = markOf(stats)
  const isUnchanged = openContentCheck(handle, stats, sha256)
  let holders = 0
  let isGivenUp = false
  const closeIfFree = (): void => {
    if (isGivenUp && holders === 0) close(handle)
  }
  return {
    bytes: Number(stats.size),
    sha256,
    mark,
    read: async (into, from) => (await handle.read(into, 0, into.length, from)).bytesRead,
    isUnchanged,
    hold() {
      if (isGivenUp) return null
      holders += 1
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        holders -= 1
        closeIfFree()
      }
    },
    giveUp() {
      if (isGivenUp) return
      isGivenUp = true
      closeIfFree()
    },
  }
}

/**
 * A writer can set the mtime of a file back, but not its ctime. The ctime changes also where the file is moved or another takes its
 * name: its content is then digested once more.
 */
const openContentCheck = (handle: fs.promises.FileHandle, stats: fs.BigIntStats, sha256: string) => {
  let verified = stats
  let checking: Promise<boolean> | null = null
  const check = async (): Promise<boolean> => {
    const now = await handle.stat({ bigint: true })
    if (now.size !== stats.size || now.mtimeNs !== stats.mtimeNs) return false
    if (now.ctimeNs === verified.ctimeNs) return true
    if ((await digestOfUnchanged(handle, now)) !== sha256) return false
    verified = now
    return true
  }
  // One for all callers that ask meanwhile: each digest reads the whole file.
  return (): Promise<boolean> =>
    (checking ??= check().finally(() => {
      checking = null
    }))
}
