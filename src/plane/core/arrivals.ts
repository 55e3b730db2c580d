// Waits for new entries in the journal. A caller registers before it reads, or an entry that arrives in between is missed.

import type { JournalEntry } from '#domain/core/journal-entry.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Timers } from '#platform/timers.ts'
import type { Feed } from './feed.ts'

export type Arrival = {
  readonly kind: 'expected'
  /**
   * Ends at the first entry that fits since `expect`, at the time given, when the plane stops, or when an operator key is
   * revoked: the call is then authenticated again before it is answered, and a revoked key must not keep its place.
   */
  within(ms: number): Promise<void>
  cancel(): void
}

export type Arrivals = {
  expect(fits: (entry: JournalEntry) => boolean): Arrival | Refusal
  /** Releases all waiters; from then on none is accepted. */
  close(): void
}

/** The most waiters: each holds a connection open. */
export const openArrivals = (feed: Feed, timers: Timers, most: number): Arrivals => {
  const waiting = new Map<() => void, (entry: JournalEntry) => boolean>()
  let closed = false
  const unsubscribe = feed.subscribe('journal followers', ({ entries }) => {
    const keyRevoked = entries.some(({ entry }) => entry.type === 'operator_key.revoked')
    for (const [wake, fits] of waiting) if (keyRevoked || entries.some(({ entry }) => fits(entry))) wake()
  })
  return {
    expect(fits) {
      // Not an empty answer: the caller would ask again at once, and again, until the plane is gone.
      if (closed) return { ...refuse('BUSY', 'this plane is stopping'), retryAfterMs: 1000 }
      if (waiting.size >= most)
        return { ...refuse('BUSY', `${most} callers wait for news already`), retryAfterMs: 1000 }
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.set(resolve, fits)
      return {
        kind: 'expected',
        async within(ms) {
          const cancel = timers.after(ms, resolve)
          await promise
          cancel()
        },
        cancel: () => void waiting.delete(resolve),
      }
    },
    close() {
      closed = true
      unsubscribe()
      for (const wake of waiting.keys()) wake()
      waiting.clear()
    },
  }
}
