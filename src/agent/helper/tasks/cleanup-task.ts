// `cleanup`: removes old files from directories that the host's own file lists. What is removed is written down first, in a folder that
// is not cleaned up.

import * as path from 'node:path'
import { replaceFile } from '#platform/files.ts'
import { filesByAge, removeFiles, type AgedFile } from '#platform/old-files.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { shortDetail, type PreparedTask, type TaskEnd, type TaskHost, type ParametersOf } from './prepared-task.ts'
import { isFull } from './task-memory.ts'
import type { ListedCleanup } from './tasks-toml.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

/** In one task: the list of them, with names of a usual length, fits into the room that is kept back. */
const mostRemoved = 1_000

export type CleanupParts = {
  readonly nowMs: () => number
  /** Gives up the room that is kept back for a full disk. */
  readonly freeRoom: () => void
}

export const prepareCleanup = (
  { tasks, trust }: TaskHost,
  id: string,
  { name }: ParametersOf<'cleanup'>,
  parts: CleanupParts,
): PreparedTask | TaskRefusal => {
  const listed = tasks.cleanup.get(name)
  if (listed === undefined) return refuseTask('NOT_LISTED', `agent.toml lists no tasks.cleanup.${name}`)
  for (const place of [...listed.directories, listed.evidence]) {
    const fault = faultOfPath(place, trust, { kind: 'folder', links: 'refused' })
    if (fault !== null) return refuseTask('PATH_UNSAFE', fault)
  }
  return {
    kind: 'prepared',
    repeatable: false,
    drop: () => Promise.resolve(),
    run: async () => cleanUp(id, listed, parts),
  }
}

const cleanUp = (
  id: string,
  { directories, evidence: folder, ...rule }: ListedCleanup,
  parts: CleanupParts,
): TaskEnd => {
  const nowMs = parts.nowMs()
  const old = directories.flatMap((directory) =>
    oldFiles(filesByAge(directory), rule, nowMs).map((file) => ({ directory, ...file })),
  )
  const list = path.join(folder, `${id}.json`)
  const chosen = listedFirst(id, old.slice(0, mostRemoved), list, parts)
  if (chosen === null)
    return {
      code: 'DISK_FULL',
      detail: shortDetail(`Nothing was removed: there is no room for the list in ${folder}`),
    }
  const outcomes = [...new Set(directories)].map((directory) => {
    const names = chosen.filter((file) => file.directory === directory).map(({ name }) => name)
    return { directory, ...removeFiles(directory, names) }
  })
  const stayed = outcomes.flatMap((one) => one.stayed.map(({ name, code }) => ({ name, code, from: one.directory })))
  const isGone = (file: (typeof chosen)[number]): boolean =>
    !stayed.some(({ name, from }) => name === file.name && from === file.directory)
  const bytes = chosen.filter(isGone).reduce((sum, file) => sum + file.bytes, 0)
  const removed = outcomes.reduce((sum, one) => sum + one.removed, 0)
  const evidence = { removed, bytes, left: old.length - chosen.length + stayed.length, list }
  const [first] = stayed
  if (first === undefined) return { evidence }
  const count = stayed.length === 1 ? '1 file' : `${stayed.length} files`
  const why = `${count} could not be removed, first ${path.join(first.from, first.name)}`
  return { code: 'NOT_DONE', detail: shortDetail(`${why}: ${first.code}`), evidence }
}

type OldFile = AgedFile & { readonly directory: string }

/**
 * Those of them that the list names, which is on the disk then. On a full disk it takes the room that is kept back, and where that is too
 * small for long names, fewer of them: the next task goes on. Null: not even one fits.
 */
const listedFirst = (
  id: string,
  files: readonly OldFile[],
  list: string,
  { freeRoom }: CleanupParts,
): readonly OldFile[] | null => {
  const write = (removed: readonly OldFile[]): boolean => {
    try {
      replaceFile(list, JSON.stringify({ task: id, removed }) + '\n', 0o600)
      return true
    } catch (error) {
      if (!isFull(error)) throw error
      return false
    }
  }
  if (write(files)) return files
  freeRoom()
  for (let count = files.length; ; count = Math.floor(count / 2)) {
    const fewer = files.slice(0, count)
    if (write(fewer)) return fewer
    if (count <= 1) return null
  }
}

/** Pure. `files`: the newest first. The oldest first is what is removed. */
const oldFiles = (
  files: readonly AgedFile[],
  { keepNewest, olderThanMs }: Pick<ListedCleanup, 'keepNewest' | 'olderThanMs'>,
  nowMs: number,
): readonly AgedFile[] =>
  files
    .slice(keepNewest)
    .filter(({ modifiedMs }) => modifiedMs <= nowMs - olderThanMs)
    .toReversed()
