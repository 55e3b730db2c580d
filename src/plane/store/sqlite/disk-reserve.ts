// Room kept back on the disk of the embedded store, so that a stolen machine can be cut off when the disk is full. It is a
// file with real blocks that is made shorter, a step at a time, when a cut-off finds no room: the rest stays out of reach of
// other programs that write to the same disk.

import * as path from 'node:path'
import { allocatedBytes, diskSpace, lengthenFile, shortenFile } from '#platform/disk-space.ts'
import type { Clock } from '#platform/clock.ts'
import { errno, removeFile } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'

export type DiskReserve = {
  /** A part of it was given up: nothing but cut-offs is committed until it is whole again. */
  spent(): boolean
  /** What an operator has to know of it; null: it is whole. */
  warning(): string | null
  /** Gives up the next part. False: nothing is left. */
  release(): boolean
  /** Makes it whole where there is room. Called every second; does not throw. */
  refill(): void
}

export const reserveName = 'muster.reserve'
/**
 * A revocation of a node without peers and allocations writes about 80 KiB into the write-ahead log, which is reused after
 * every one of them while the reserve is spent, and lets the database grow by up to 4 KiB: enough for several hundred.
 */
export const reserveBytes = 4 << 20
const stepBytes = 256 << 10
/** Left free beside the reserve: making it must not be what fills a disk. */
const besideBytes = 4 << 20
/** Under a quota the system reports room that this user does not have, and each attempt writes megabytes. */
const shortestRetryMs = 2000
const longestRetryMs = 5 * 60_000

export const openDiskReserve = (folder: string, log: Log, clock: Pick<Clock, 'monotonicMs'>): DiskReserve => {
  const file = path.join(folder, reserveName)
  let kept = allocatedBytes(file)
  // No file: it was never made, so nothing of it can have been given up.
  let spent = pathExists(file) && kept < reserveBytes

  let notBeforeMs = -Infinity
  let retryMs = shortestRetryMs
  /** What the last attempt failed with, logged once. */
  let failure: string | null = null

  const shorten = (bytes: number): void => {
    try {
      shortenFile(file, bytes)
    } finally {
      kept = allocatedBytes(file)
    }
  }

  /** What a failed attempt has written is room that others need. */
  const takeBack = (bytes: number): void => {
    try {
      if (spent || bytes > 0) shorten(bytes)
      else removeFile(file)
    } catch (error) {
      log.debug({ err: error }, 'a part of the reserve of the store could not be given back')
    }
  }

  const reserve: DiskReserve = {
    spent: () => spent,
    warning() {
      if (kept >= reserveBytes) return null
      const left = `${Math.floor(kept / 1024)} of ${reserveBytes / 1024} KiB`
      return spent
        ? `the disk was full and the reserve of the store is in use (${left} are left): only revoke, quarantine, halt and withdraw are committed until there is room for it again`
        : `there is no room for the reserve of the store (${left}): on a full disk no node could be revoked`
    },
    release() {
      if (kept <= 0) return false
      try {
        shorten(Math.max(0, kept - stepBytes))
      } catch (error) {
        log.error({ err: error }, 'the reserve of the store could not be released')
        return false
      }
      if (!spent) log.warn({ left: kept }, 'the disk is full: the reserve of the store is in use, for cut-offs only')
      spent = true
      return true
    },
    refill() {
      // An operator may have removed it to make room.
      if (!pathExists(file)) kept = 0
      if (kept >= reserveBytes) return
      const before = kept
      const space = diskSpace(folder)
      if (space === null || space.availableBytes < reserveBytes - before + besideBytes) return
      if (clock.monotonicMs() < notBeforeMs) return
      try {
        lengthenFile(file, reserveBytes - before)
        // Written and flushed; some file systems count its blocks only later.
        kept = reserveBytes
      } catch (error) {
        notBeforeMs = clock.monotonicMs() + retryMs
        retryMs = Math.min(2 * retryMs, longestRetryMs)
        const code = errno(error) ?? String(error)
        if (code !== failure) log.warn({ err: error }, 'the reserve of the store could not be made, and is tried again')
        failure = code
        takeBack(before)
        return
      }
      notBeforeMs = -Infinity
      retryMs = shortestRetryMs
      failure = null
      if (spent) log.info('the reserve of the store is whole again')
      spent = false
    },
  }
  reserve.refill()
  return reserve
}
