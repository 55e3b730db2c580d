// Outputs without a helper: below a directory of the agent's own user, with what that user may do. For a first try, and for
// containers (`muster agent run --publish DIR`).

import * as path from 'node:path'
import { errno, makeFolder, processOwner, type Owner } from '#platform/files.ts'
import type { Random } from '#platform/random.ts'
import { findGroup, findUser } from '#platform/system-users.ts'
import { isInMemory } from '#platform/unlinked-file.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import type { Publisher } from './publisher.ts'
import { removeGeneration, writeGeneration } from './write-generation.ts'

export type OwnPlace = {
  /** Where every output is a folder, whatever directory it asks for on hosts with a helper; null: nowhere. */
  readonly directory: string | null
  /** Whether keys may be written to a disk. */
  readonly keysOnDisk: () => boolean
  readonly reload: Publisher['reload']
}

export const openOwnPublisher = ({ directory: given, keysOnDisk, reload }: OwnPlace, random: Random): Publisher => {
  const directory = given === null ? null : path.resolve(given)
  return {
    placeOf: ({ name }) => (directory === null ? null : path.join(directory, name)),
    publish: (generation) => {
      if (directory === null) throw new Error('This agent has no directory for outputs: start it with --publish DIR')
      const { files } = generation.output
      return told(directory, () => {
        makeFolder(directory, 0o755)
        if (!keysOnDisk() && !isInMemory(directory))
          throw new Error(`The keys of this node must not reach a disk, and ${directory} is on one: use a tmpfs`)
        writeGeneration(directory, generation, ownerOf(files), random)
      })
    },
    remove: (output) =>
      directory === null ? Promise.resolve() : told(directory, () => removeGeneration(directory, output)),
    reload,
  }
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
const told = async (directory: string, act: () => void): Promise<void> => {
  try {
    act()
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
  return Promise.resolve()
}
