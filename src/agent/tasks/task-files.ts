// The bytes that a task asks for, fetched from the plane by their digest into the agent's own folder before the helper is asked to begin.
// The helper digests them once more while it copies them: what lies in a folder of the agent proves nothing.

import * as path from 'node:path'
import { downloadFromPlane } from '#agent/link/plane-download.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { diskSpace } from '#platform/disk-space.ts'
import { errno, letPass, letRead, makeFolder, removeFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import { isFolder } from '#platform/paths.ts'
import { sha256OfFile } from '#platform/served-file.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { TaskEnvelope } from '#wire/core/task-statements.ts'
import { taskFileApi } from '#wire/tasks/task-file-api.ts'
import { taskParameters } from '#wire/tasks/task-parameters.ts'
import type { BeginOutcome } from './helped-tasks.ts'
import type { TaskingAgent } from './task-link.ts'

export type TaskFiles = {
  /** `path`: null where the task asks for no file. */
  fetch(
    task: TaskEnvelope,
  ): Promise<
    { readonly kind: 'file'; readonly path: string | null } | Extract<BeginOutcome, { kind: 'refused' | 'again' }>
  >
  /** Removes what was fetched for other tasks than these. */
  keepOnly(ids: readonly string[]): void
}

const folderName = 'task-files'
/** What a download leaves free: renewals and everything else on that disk go first. */
const leftFreeBytes = 64 * 1024 * 1024

export const openTaskFiles = (
  agent: TaskingAgent,
  identityNow: () => Identity,
  fetchFile: typeof downloadFromPlane = downloadFromPlane,
): TaskFiles => {
  const folder = path.join(path.resolve(agent.config.stateFolder), folderName)
  /** One after the other: two at once would take the same free room for theirs, and fill the disk together. */
  let before: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const mine = before.then(run)
    before = mine.catch(() => {})
    return mine
  }

  const download = async (id: string, sha256: string): Promise<Awaited<ReturnType<TaskFiles['fetch']>>> => {
    makeFolder(folder, 0o700)
    const file = path.join(folder, id)
    const most = Math.max(0, (diskSpace(folder)?.availableBytes ?? 0) - leftFreeBytes)
    const call = { endpoint: taskFileApi.download, params: { digest: sha256 }, etag: `"${sha256}"`, most, file }
    const outcome = await fetchFile(agent, identityNow(), call)
    if (outcome.kind === 'too-large')
      return {
        kind: 'refused',
        fault: 'DISK_FULL',
        why: `The file has ${outcome.bytes} bytes, and there is room for ${most} more`,
      }
    if (outcome.kind !== 'downloaded') return notFetched(outcome)
    if ((await sha256OfFile(file)) === sha256) {
      // The helper has none of root's rights to read what others keep for themselves. Nobody can list the folder.
      letPass(path.dirname(folder))
      letPass(folder)
      letRead(file)
      return { kind: 'file', path: file }
    }
    removeFile(file)
    return { kind: 'refused', fault: 'FILE_DIFFERS', why: 'What the plane sent has another digest than the task says' }
  }

  return {
    fetch: async ({ id, type, parameters }) => {
      // What does not fit is for the helper to refuse.
      if (type !== 'fetch-file' || !matchesSchema(taskParameters['fetch-file'], parameters))
        return { kind: 'file', path: null }
      try {
        return await inTurn(() => download(id, parameters.sha256))
      } catch (error) {
        const code = errno(error)
        if (code === null) throw error
        const isFull = code === 'ENOSPC' || code === 'EDQUOT'
        return {
          kind: 'refused',
          fault: isFull ? 'DISK_FULL' : 'NOT_DONE',
          why: `${folder} cannot be written: ${code}`,
        }
      }
    },
    keepOnly: (ids) => {
      try {
        if (!isFolder(folder)) return
        for (const name of namesIn(folder)) if (!ids.includes(name)) removeFile(path.join(folder, name))
      } catch (error) {
        // A disk that is read-only by now, which other parts report: it is tried again.
        if (errno(error) === null) throw error
        agent.log.warn({ err: error }, 'files of tasks that have ended could not be removed')
      }
    },
  }
}

/** The plane sends so many files at a time. */
const retryAfter = (failure: Exclude<PlaneFailure, { kind: 'stopped' }>): { readonly afterMs?: number } =>
  failure.kind === 'refused' && failure.retryAfterMs !== null ? { afterMs: failure.retryAfterMs } : {}

const notFetched = (failure: PlaneFailure): Extract<BeginOutcome, { kind: 'refused' | 'again' }> => {
  if (failure.kind === 'stopped') return { kind: 'again', why: 'the agent is stopped' }
  const { text } = failure.trouble
  return failure.kind === 'refused' && failure.code === 'TASK_FILE_NOT_FOUND'
    ? { kind: 'refused', fault: 'NOT_DONE', why: text }
    : { kind: 'again', why: text, ...retryAfter(failure) }
}
