// A file whose content another user has brought, put in place if it is the one that was meant: copied while its digest is made, and
// renamed only when that is right. What is read is what is checked.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, flushFolder, type Owner } from './files.ts'

export type FileToPlace = {
  readonly from: string
  /** Whose file it has to be; null: anybody's. Else who names it could have files examined that he cannot read. */
  readonly fromOwner: number | null
  /** One that only this user can change. */
  readonly directory: string
  readonly name: string
  /** Hex. */
  readonly sha256: string
  readonly largest: number
  readonly mode: number
  /** Null: who places it. */
  readonly owner: Owner | null
  readonly withinMs: number
}

export type Placed =
  | { readonly kind: 'placed'; readonly bytes: number; readonly replaced: boolean }
  /** Nothing is left of it. */
  | { readonly kind: 'differs'; readonly why: string }
  | { readonly kind: 'not-placed'; readonly why: string }
  /** Its time is over, or it was called off: it is not put in place any more. */
  | { readonly kind: 'stopped' }

const chunkBytes = 256 * 1024

/** For what is under way to notice that it is over. */
const drainMs = 1_000

/**
 * Throws what the disk throws; nothing is left of it then. `over`: it is called off. A file system that does not answer keeps only the
 * one copy waiting, which is removed when it goes on.
 */
export const placeFile = async (file: FileToPlace, over: AbortSignal): Promise<Placed> => {
  if (over.aborted) return { kind: 'stopped' }
  const ended = AbortSignal.any([over, AbortSignal.timeout(file.withinMs)])
  const placing = placeBefore(ended, file)
  placing.catch(() => {})
  const hangs = new Promise<Placed>((resolve) =>
    ended.addEventListener('abort', () => void setTimeout(resolve, drainMs, { kind: 'stopped' }).unref()),
  )
  return Promise.race([placing, hangs])
}

const placeBefore = async (ended: AbortSignal, file: FileToPlace): Promise<Placed> => {
  const from = await openToRead(file)
  if ('why' in from) return { kind: 'not-placed', why: from.why }
  try {
    return await copyInto(from.handle, file, ended)
  } finally {
    await from.handle.close()
  }
}

/** Neither a link at the end of its path nor something that is no file: a pipe would never end. */
const openToRead = async ({
  from: file,
  fromOwner,
}: Pick<FileToPlace, 'from' | 'fromOwner'>): Promise<
  { readonly handle: fs.promises.FileHandle } | { readonly why: string }
> => {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants
  try {
    const handle = await fs.promises.open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const stats = await handle.stat()
    if (stats.isFile() && (fromOwner === null || stats.uid === fromOwner)) return { handle }
    await handle.close()
    if (stats.isFile()) return { why: `${file} is not the agent's own file` }
    return { why: `${file} is not a file` }
  } catch (error) {
    return { why: `${file} cannot be read: ${errno(error) ?? String(error)}` }
  }
}

const copyInto = async (from: fs.promises.FileHandle, file: FileToPlace, ended: AbortSignal): Promise<Placed> => {
  const place = path.join(file.directory, file.name)
  const beside = path.join(file.directory, `.muster.${file.name}.new`)
  // A file of this name was left by a crash, or is being written for the same place: then one of the two is placed.
  await fs.promises.rm(beside, { force: true })
  const to = await fs.promises.open(beside, 'wx', 0o600).catch((error: unknown) => {
    if (errno(error) === 'EEXIST') return null
    throw error
  })
  if (to === null) return takenPlace(place)
  const { dev, ino } = await to.stat()
  const isOurs = (): boolean => {
    const there = fs.lstatSync(beside, { throwIfNoEntry: false })
    return there?.dev === dev && there.ino === ino
  }
  try {
    const copied = await copy(from, to, file.largest, ended)
    if (ended.aborted) return { kind: 'stopped' }
    if (copied.bytes > file.largest) return { kind: 'differs', why: `it has more than ${file.largest} bytes` }
    if (copied.sha256 !== file.sha256) return { kind: 'differs', why: 'it has another SHA-256' }
    // The mode first: a process that has given a file away may not change it any more.
    await to.chmod(file.mode)
    if (file.owner !== null) await to.chown(file.owner.uid, file.owner.gid)
    await to.sync()
    if (ended.aborted) return { kind: 'stopped' }
    if (!isOurs()) return takenPlace(place)
    const replaced = fs.lstatSync(place, { throwIfNoEntry: false }) !== undefined
    fs.renameSync(beside, place)
    flushFolder(file.directory)
    return { kind: 'placed', bytes: copied.bytes, replaced }
  } finally {
    if (isOurs()) fs.rmSync(beside, { force: true })
    await to.close()
  }
}

const takenPlace = (place: string): Placed => ({ kind: 'not-placed', why: `Another file is being written to ${place}` })

const copy = async (
  from: fs.promises.FileHandle,
  to: fs.promises.FileHandle,
  largest: number,
  ended: AbortSignal,
): Promise<{ readonly bytes: number; readonly sha256: string }> => {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(chunkBytes)
  let bytes = 0
  while (bytes <= largest && !ended.aborted) {
    const { bytesRead } = await from.read(chunk, 0, chunk.length, null)
    if (bytesRead === 0) break
    const part = chunk.subarray(0, bytesRead)
    hash.update(part)
    await to.writeFile(part)
    bytes += bytesRead
  }
  return { bytes, sha256: hash.digest('hex') }
}
