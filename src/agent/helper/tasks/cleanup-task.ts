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

/** In one task: the list of them fits into the room that is kept back. */
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
  const chosen = old.slice(0, mostRemoved)
  const list = path.join(folder, `${id}.json`)
  const write = (): void => replaceFile(list, JSON.stringify({ task: id, removed: chosen }) + '\n', 0o600)
  try {
    try {
      write()
    } catch (error) {
      if (!isFull(error)) throw error
      parts.freeRoom()
      write()
    }
  } catch (error) {
    if (!isFull(error)) throw error
    return {
      code: 'DISK_FULL',
      detail: shortDetail(`Nothing was removed: there is no room for the list in ${folder}`),
    }
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
