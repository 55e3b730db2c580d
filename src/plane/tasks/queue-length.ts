// How many tasks wait in the domain, and how many of them are of the workers of each issuer. Counted now and then: the limit keeps the
// store from filling up, and may be off by what several planes queue within a second.

import { issuerInId } from '#domain/core/principal.ts'
import type { TaskQueuer } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'

export type QueueLength = {
  now(): Promise<Queued>
  /** One more was queued here. */
  added(by: Pick<TaskQueuer, 'kind' | 'id'>): void
}

/** `queuedOf`: of workers, by the names of their issuers. */
type Queued = { readonly queued: number; readonly queuedOf: ReadonlyMap<string, number> }

const countedEveryMs = 1000

export const openQueueLength = ({ store, clock }: Pick<Core, 'store' | 'clock'>): QueueLength => {
  let counted: Queued = { queued: 0, queuedOf: new Map() }
  let countedMs = -Infinity
  return {
    async now() {
      const nowMs = clock.monotonicMs()
      if (nowMs - countedMs >= countedEveryMs) {
        const [queued, ofWorkers] = [await store.countQueuedTasks(), await store.countQueuedOfWorkers()]
        counted = { queued, queuedOf: byIssuer(ofWorkers) }
        countedMs = nowMs
      }
      return counted
    },
    added({ kind, id }) {
      const more = kind === 'worker' ? byIssuer([[id, 1]], counted.queuedOf) : counted.queuedOf
      counted = { queued: counted.queued + 1, queuedOf: more }
    },
  }
}

const byIssuer = (
  ofWorkers: Iterable<readonly [worker: string, count: number]>,
  before: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, number> => {
  const counts = new Map(before)
  for (const [id, count] of ofWorkers) counts.set(issuerInId(id), (counts.get(issuerInId(id)) ?? 0) + count)
  return counts
}
