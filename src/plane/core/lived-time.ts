// The time by which something is removed for good. It starts when the domain was made and advances only while a plane
// leads, by its monotonic clock: so it is never ahead of the real time, however wrong the wall clock is.
// It lags by all the time in which no plane ran, which costs some rows that are kept for longer.
//
// A domain cannot have been made in the future: its root would not have begun, and no plane starts before that.

import type { Clock } from '#platform/clock.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type LivedTime = {
  /** Never ahead of the wall clock either. */
  nowMs(): Promise<number>
  /**
   * Writes down what has passed since it was last called with this store. Every time this replica begins to lead it has
   * another one, so that what passed under another leader is not counted twice.
   */
  add(asLeader: Pick<Store, 'addLived'>): Promise<void>
}

export const openLivedTime = (store: Pick<Store, 'lived' | 'journal'>, clock: Clock): LivedTime => {
  let madeAtMs: number | null = null
  let counted: { readonly by: Pick<Store, 'addLived'>; readonly untilMs: number } | null = null
  return {
    async nowMs() {
      madeAtMs ??= await domainMadeAtMs(store)
      return Math.min(clock.nowMs(), madeAtMs + (await store.lived()))
    },
    async add(asLeader) {
      const before = counted
      const untilMs = clock.monotonicMs()
      if (before?.by === asLeader) await asLeader.addLived(untilMs - before.untilMs)
      counted = { by: asLeader, untilMs }
    },
  }
}

const domainMadeAtMs = async ({ journal }: Pick<Store, 'journal'>): Promise<number> => {
  const query = { after: null, last: null, limit: 1, node: null, type: 'domain.created' } as const
  const [created] = await journal.read(query)
  // Without that entry nothing is ever removed, which is safe.
  return created?.entry.atMs ?? 0
}
