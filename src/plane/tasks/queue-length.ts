// How many tasks wait in the domain. Counted now and then: the limit keeps the store from filling up, and may be off by what several
// planes queue within a second.

import type { Core } from '#plane/core/core.ts'

export type QueueLength = {
  now(): Promise<number>
  /** One more was queued here. */
  added(): void
}

const countedEveryMs = 1000

export const openQueueLength = ({ store, clock }: Pick<Core, 'store' | 'clock'>): QueueLength => {
  let counted = { count: 0, atMs: -Infinity }
  return {
    async now() {
      const nowMs = clock.monotonicMs()
      if (nowMs - counted.atMs >= countedEveryMs) counted = { count: await store.countQueuedTasks(), atMs: nowMs }
      return counted.count
    },
    added() {
      counted = { ...counted, count: counted.count + 1 }
    },
  }
}
