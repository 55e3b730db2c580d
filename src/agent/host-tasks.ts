// Tasks through the helper of this host: its verbs, and whether agent.toml turns them on.

import { HelperRefusal, type HelperClient } from '#agent/helper/client.ts'
import { readRefusal } from '#agent/helper/tasks/task-verbs.ts'
import type { BeginOutcome, TaskHelper } from '#agent/tasks/helped-tasks.ts'

export type HostTasks = TaskHelper & {
  /** What the helper said last that it allows; null: it does not answer. */
  allowed(verbs: readonly string[] | null): void
}

export const openHostTasks = (client: HelperClient): HostTasks => {
  const waiting = new Set<() => void>()
  let takes = false
  return {
    allowed: (verbs) => {
      takes = verbs?.includes('task.begin') === true
      if (takes) for (const go of [...waiting]) go()
    },
    takes: () => takes,
    taken: (signal) =>
      new Promise((resolve) => {
        if (takes || signal.aborted) return resolve()
        const go = (): void => {
          waiting.delete(go)
          signal.removeEventListener('abort', go)
          resolve()
        }
        waiting.add(go)
        signal.addEventListener('abort', go)
      }),
    begin: async (statement, task, file) => {
      try {
        const { outcome } = await client.ask('task.begin', { statement, task, ...(file === null ? {} : { file }) })
        return { kind: outcome }
      } catch (error) {
        return notBegun(error)
      }
    },
    nonce: async () => (await orNull(client.ask('task.nonce', {})))?.nonce ?? null,
    look: async () => {
      const looked = await orNull(client.ask('task.look', {}))
      return looked === null ? null : { number: looked.number, tasks: looked.tasks }
    },
    learn: async (statement) => {
      try {
        await client.ask('task.learn', { statement })
        return 'learned'
      } catch (error) {
        if (!(error instanceof HelperRefusal)) throw error
        return mayPass.has(error.code) ? null : 'refused'
      }
    },
    // A task that is no more, or has ended already, is refused: there is nothing left to say of it.
    ended: (id, result) => settled(client.ask('task.ended', { id, ...result }), 'kept'),
    forget: (id) => settled(client.ask('task.forget', { id }), 'forgotten'),
  }
}

/** What is different later without anybody's doing. */
const mayPass: ReadonlySet<string> = new Set(['NO_HELPER', 'BUSY', 'BAD_ANSWER', 'SOCKET_UNSAFE', 'CONFIG_INVALID'])
/** With these the request was not looked at. An answer that did not come (`NO_HELPER`) is not one of them. */
const neverSent: ReadonlySet<string> = new Set(['BUSY', 'SOCKET_UNSAFE', 'CONFIG_INVALID'])
/** With these codes no helper has looked at the task. */
const notTaken: ReadonlySet<string> = new Set(['NOT_ALLOWED', 'UNKNOWN_VERB', 'BAD_REQUEST', 'TOO_LONG'])

const notBegun = (error: unknown): BeginOutcome => {
  if (!(error instanceof HelperRefusal)) throw error
  if (neverSent.has(error.code)) return { kind: 'again', why: error.message }
  if (notTaken.has(error.code))
    return { kind: 'refused', fault: 'TYPE_NOT_ALLOWED', why: error.message, isUnjudged: true }
  // A fault in the helper: it may have remembered the task before, and says so when it is asked again.
  if (error.code !== 'TASK_REFUSED') return { kind: 'again', why: error.message, isUnsure: true }
  const { fault, why } = readRefusal(error.message)
  return fault === 'HELPER_BUSY' ? { kind: 'again', why } : { kind: 'refused', fault, why }
}

const orNull = async <T>(asked: Promise<T>): Promise<T | null> => {
  try {
    return await asked
  } catch (error) {
    if (error instanceof HelperRefusal) return null
    throw error
  }
}

const settled = async <W extends string>(asked: Promise<unknown>, word: W): Promise<W | null> => {
  try {
    await asked
    return word
  } catch (error) {
    if (!(error instanceof HelperRefusal)) throw error
    return mayPass.has(error.code) ? null : word
  }
}
