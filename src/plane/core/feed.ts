// What has been committed, told in the same turn to those in this process who act on it: the deny-list, the open
// channels, whoever follows the journal. A subscriber is called after the commit is durable and before it is answered.

import type { Committed } from '#plane/store/contract/store.ts'

export type Feed = {
  publish(committed: Committed): void
  subscribe(subscriber: (committed: Committed) => void): () => void
}

export const openFeed = (): Feed => {
  const subscribers = new Set<(committed: Committed) => void>()
  return {
    publish(committed) {
      const failures: unknown[] = []
      for (const subscriber of subscribers) {
        try {
          subscriber(committed)
        } catch (error) {
          failures.push(error)
        }
      }
      // Told to all first: whatever is wrong with one of them, a revocation still cuts channels.
      if (failures.length > 0) throw new AggregateError(failures, 'what was committed could not be told to everybody')
    },
    subscribe(subscriber) {
      subscribers.add(subscriber)
      return () => void subscribers.delete(subscriber)
    },
  }
}
