// Outputs without a helper: below a directory of the agent's own user, with what that user may do. For a first try, and for
// containers (`muster agent run --publish DIR`).

import * as path from 'node:path'
import { namesOfGenerations, type Replaced } from '#platform/file-generations.ts'
import { errno, makeFolder, processOwner, type Owner } from '#platform/files.ts'
import { mountPointOf, pathExists } from '#platform/paths.ts'
import type { Random } from '#platform/random.ts'
import { findGroup, findUser } from '#platform/system-users.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { isInMemory } from '#platform/unlinked-file.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { LeftBehind, type Generation, type Place } from './publisher.ts'
import { removeGeneration, writeGeneration } from './write-generation.ts'

type OwnPublisher = {
  /** Of every output, whatever directory it asks for on hosts with a helper; null: there is none. */
  readonly place: Place | null
  publish(generation: Generation, directory: string): Replaced
  /** Also from a directory of earlier times. */
  remove(output: string, place: Place): void
}

/** `given`: as --publish; null: it was not. `keysOnDisk`: whether keys may be written to a disk. Methods throw what went wrong. */
export const openOwnPublisher = (given: string | null, keysOnDisk: () => boolean, random: Random): OwnPublisher => ({
  place: given === null ? null : { by: 'agent', directory: path.resolve(given) },
  publish: (generation, directory) =>
    withWords(directory, () => {
      makeFolder(directory, 0o755)
      const fault = faultOfOwn(directory)
      if (fault !== null)
        throw new Error(`No key is written in ${directory}: ${fault}; correct that, or use another --publish DIR`)
      refuseDisk(directory, keysOnDisk)
      return writeGeneration(directory, generation, ownerOf(generation.output.files), random)
    }),
  remove: (output, { directory, mount }) => {
    if (!namesOfGenerations(directory).includes(output) && mount !== undefined && mountPointOf(directory) !== mount)
      throw leftBehind(output, directory, `${mount} is not mounted`, goneDisk)
    if (!pathExists(directory)) return
    const fault = faultOfOwn(directory)
    if (fault !== null) throw leftBehind(output, directory, fault)
    try {
      removeGeneration(directory, output)
    } catch (error) {
      // What may pass is tried again; the rest can only be reported to the owner of the host.
      if (!forGood.has(errno(error) ?? '')) throw error
      throw leftBehind(output, directory, error instanceof Error ? error.message : String(error))
    }
  },
})

const forGood: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'ELOOP', 'ENOTDIR'])

const leftBehind = (output: string, directory: string, why: string, next = 'remove it by hand'): LeftBehind =>
  new LeftBehind(`${path.join(directory, output)} is left there: ${why}; ${next}`)

/** An empty one in its place shows that the files are gone. */
const goneDisk = 'mount it, or once another one, such as a tmpfs, if that disk is gone for good'

/** Another user who can write there, or put another folder in its place, could read a key or have other files removed. */
const faultOfOwn = (directory: string): string | null =>
  faultOfPath(directory, { uid: processOwner().uid, stickyFolders: true }, { kind: 'folder', links: 'followed' })

/** For a node whose keys stay in memory. */
export const refuseDisk = (directory: string, keysOnDisk: () => boolean): void => {
  if (!keysOnDisk() && !isInMemory(directory))
    throw new Error(`The keys of this node must not reach a disk, and ${directory} is on one: use a tmpfs`)
}

/** Null: the user of the agent, and the group of that user. */
const ownerOf = ({ owner, group }: ConfigOutput['files']): Owner | null => {
  if (owner === null && group === null) return null
  const own = processOwner()
  const user = owner === null ? own : findUser(owner)
  if (user === null) throw new Error(`There is no user ${owner} on this host`)
  const gid = group === null ? user.gid : findGroup(group)
  if (gid === null) throw new Error(`There is no group ${group} on this host`)
  if (own.uid !== 0 && user.uid !== own.uid)
    throw new Error(`Only the helper can write files of user ${owner}: see muster agent helper --help`)
  return { uid: user.uid, gid }
}

/** What the disk says, in words that name the place and the next step. */
const withWords = <T>(directory: string, act: () => T): T => {
  try {
    return act()
  } catch (error) {
    switch (errno(error)) {
      case 'ENOSPC':
      case 'EDQUOT':
        throw new Error(`The disk of ${directory} is full: make room there`, { cause: error })
      case 'EROFS':
        throw new Error(`The disk of ${directory} is read-only`, { cause: error })
      case 'EACCES':
      case 'EPERM':
        throw new Error(
          `${directory} may not be written, or its files not given to that group, by the user of the agent`,
          {
            cause: error,
          },
        )
      default:
        throw error
    }
  }
}
