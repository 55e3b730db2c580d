// `fetch-file`: a file of the plane's, by its digest, into a directory that the host's own file lists. The agent has fetched the bytes;
// that they are the ones that were signed for is checked here, while they are copied.

import * as path from 'node:path'
import { findGroup, findUser } from '#platform/system-users.ts'
import { processOwner, type Owner } from '#platform/files.ts'
import { placeFile, type FileToPlace } from '#platform/placed-file.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { shortDetail, type PreparedTask, type TaskEnd, type TaskHost, type ParametersOf } from './prepared-task.ts'
import { isFull } from './task-memory.ts'
import { isWithin, type ListedFileDirectory } from './tasks-toml.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export const prepareFetchFile = (
  { tasks, trust, agentUser }: TaskHost,
  { sha256, path: place }: ParametersOf<'fetch-file'>,
  from: string | null,
): PreparedTask | TaskRefusal => {
  if (!isPlainPath(place))
    return refuseTask('PARAMETERS_INVALID', 'path takes letters, digits and ._@+-, and no name that begins with a dot')
  const [directory, name] = [path.dirname(place), path.basename(place)]
  // The narrowest entry counts.
  const [listed] = tasks.files
    .filter((entry) => isWithin(directory, entry.directory))
    .sort((a, b) => b.directory.length - a.directory.length)
  if (listed === undefined)
    return refuseTask('NOT_LISTED', `agent.toml lists no directory of tasks.files with ${directory}`)
  const fault = faultOfPath(directory, trust, { kind: 'folder', links: 'refused' })
  if (fault !== null) return refuseTask('PATH_UNSAFE', fault)
  const owner = ownerOf(listed)
  if ('kind' in owner) return owner
  if (from === null) return refuseTask('NOT_DONE', 'The agent has brought no file')
  const { mode, largest, withinMs } = listed
  const fromOwner = agentUser?.uid ?? null
  return {
    kind: 'prepared',
    repeatable: false,
    drop: () => Promise.resolve(),
    run: (over) =>
      placed({ from, fromOwner, directory, name, sha256, largest, withinMs, mode, owner: owner.owner }, over),
  }
}

const placed = async (file: FileToPlace, over: AbortSignal): Promise<TaskEnd> => {
  try {
    const done = await placeFile(file, over)
    switch (done.kind) {
      case 'placed':
        return {
          evidence: {
            path: path.join(file.directory, file.name),
            sha256: file.sha256,
            bytes: done.bytes,
            replaced: done.replaced,
          },
        }
      case 'differs':
        return {
          code: 'FILE_DIFFERS',
          detail: shortDetail(`The file is not the one that was signed for: ${done.why}`),
        }
      case 'not-placed':
        return { code: 'NOT_DONE', detail: shortDetail(done.why) }
      case 'stopped':
        return over.aborted
          ? { code: 'INTERRUPTED', detail: 'The file was being put in place when the helper ended' }
          : { code: 'TIMED_OUT', detail: `The file was not in place after ${file.withinMs / 1000} s` }
    }
  } catch (error) {
    if (isFull(error)) return { code: 'DISK_FULL', detail: shortDetail(`There is no room in ${file.directory}`) }
    throw error
  }
}

/** What is plain in agent.toml is so here, too. */
const isPlainPath = (place: string): boolean =>
  place.length <= 383 && /^(\/[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*)+$/.test(place)

const ownerOf = ({ directory, owner, group }: ListedFileDirectory): { readonly owner: Owner | null } | TaskRefusal => {
  if (owner === null && group === null) return { owner: null }
  const own = processOwner()
  const user = owner === null ? own : findUser(owner)
  if (user === null) return refuseTask('NOT_LISTED', `${directory}: there is no user ${owner}`)
  const gid = group === null ? user.gid : findGroup(group)
  return gid === null
    ? refuseTask('NOT_LISTED', `${directory}: there is no group ${group}`)
    : { owner: { uid: user.uid, gid } }
}
