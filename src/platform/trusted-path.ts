// Places that only one user and root can change, from the top of the file system down: what is read there may be believed, and
// what is written there cannot be led elsewhere.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { errno, readShortFile } from './files.ts'
import { isOnReadOnlyMount } from './mount-table.ts'

export type Trust = {
  /** Besides root, who may own what is trusted. */
  readonly uid: number
  /** A folder such as /tmp counts: all may write in it, and none but the owner can move what is there. */
  readonly stickyFolders: boolean
  /** A folder that all may write counts where it is mounted read-only, as the volumes of Kubernetes are. No, unless given. */
  readonly readOnlyMounts?: boolean
}

/** As root trusts, and as a user does who started a program by hand. */
export const ownTrust = (): Trust => {
  const uid = process.geteuid?.() ?? 0
  return { uid, stickyFolders: uid !== 0 }
}

/** `links`: those of trusted users are followed, or none is. */
export type Expected = { readonly kind: 'file' | 'folder' | 'socket'; readonly links: 'refused' | 'followed' }

const mostLinks = 40

/**
 * Null where no other user can change the place or any folder above it; else a sentence that names the component. Looked at anew
 * by every call: what is trusted stays so until one of the trusted users changes it.
 */
export const faultOfPath = (place: string, trust: Trust, { kind, links }: Expected): string | null => {
  if (!path.isAbsolute(place)) return `${place} is not a full path`
  let left = segmentsOf(place)
  let at = '/'
  for (let followed = 0; ;) {
    const stats = lstatOf(at)
    if (typeof stats === 'string') return stats
    const isLast = left.length === 0
    if (stats.isSymbolicLink()) {
      if (links === 'refused') return `${at} is a link; write the path that it leads to`
      if (!isOwned(stats, trust)) return ownerFault(at, stats, trust)
      if (++followed > mostLinks) return `${place} leads through more than ${mostLinks} links`
      const target = path.resolve(path.dirname(at), fs.readlinkSync(at))
      left = [...segmentsOf(target), ...left]
      at = '/'
      continue
    }
    const fault = faultOf(at, stats, trust, isLast ? kind : 'folder', isLast)
    if (fault !== null) return fault
    const [next, ...rest] = left
    if (next === undefined) return null
    at = path.join(at, next)
    left = rest
  }
}

/** The text of a file that no other user can change; `fault`: why it is not read. */
export const readTrustedFile = (
  file: string,
  trust: Trust,
  longest: number,
): { readonly text: string } | { readonly fault: string } => {
  const fault = faultOfPath(file, trust, { kind: 'file', links: 'followed' })
  if (fault !== null) return { fault }
  try {
    // Its links were followed, and are those of trusted users.
    const found = readShortFile(fs.realpathSync(file), longest, 'refused')
    if (found === null) return { fault: `${file} does not exist` }
    return found === 'too-long' ? { fault: `${file} has more than ${longest} bytes` } : found
  } catch (error) {
    return { fault: `${file} cannot be read: ${errno(error) ?? String(error)}` }
  }
}

const segmentsOf = (place: string): string[] => place.split('/').filter((segment) => segment !== '')

const lstatOf = (place: string): fs.Stats | string => {
  try {
    return fs.lstatSync(place)
  } catch (error) {
    return errno(error) === 'ENOENT' ? `${place} does not exist` : `${place} cannot be looked at: ${errno(error)}`
  }
}

const faultOf = (
  place: string,
  stats: fs.Stats,
  trust: Trust,
  kind: Expected['kind'],
  isLast: boolean,
): string | null => {
  if (!isKind[kind](stats)) return `${place} is not a ${kind}`
  if (!isOwned(stats, trust)) return ownerFault(place, stats, trust)
  if ((stats.mode & 0o022) === 0) return null
  if (trust.stickyFolders && !isLast && (stats.mode & 0o1000) !== 0) return null
  if (trust.readOnlyMounts === true && !isLast && isOnReadOnlyMount(place, stats)) return null
  return `${place} can be written by other users than its owner (mode ${(stats.mode & 0o7777).toString(8)})`
}

const isKind: Readonly<Record<Expected['kind'], (stats: fs.Stats) => boolean>> = {
  file: (stats) => stats.isFile(),
  folder: (stats) => stats.isDirectory(),
  socket: (stats) => stats.isSocket(),
}

const isOwned = ({ uid }: fs.Stats, trust: Trust): boolean => uid === 0 || uid === trust.uid

const ownerFault = (place: string, { uid }: fs.Stats, trust: Trust): string =>
  `${place} belongs to user ${uid}, not to root${trust.uid === 0 ? '' : ` or to user ${trust.uid}`}`
