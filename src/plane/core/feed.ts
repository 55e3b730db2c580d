// What has been committed, published in the same turn to the parts of this process that act on it. A subscriber is called
// after the commit is durable and before it is answered; what other replicas commit is published likewise.

import type { Committed } from '#plane/store/contract/store.ts'

/**
 * Every subscriber, in the order in which they act, independent of the order in which they were opened. Subscribers that decide
 * about access come before those that notify others, so that a caller that reacts at once finds the new state in force. Only
 * the leader has the last four.
 */
const feedOrder = [
  // First: if a later subscriber fails, the head of the journal is still kept outside the database.
  'journal witness',
  // Before anything reads a row again: what this commit ends has ended.
  'ended rights',
  // Read by all that follow: a commit is acted on under the settings it made.
  'domain settings',
  'store confirmations',
  // Before channels: they send in this turn which authorities are withdrawn.
  'authority',
  'served names',
  'programs authority',
  // Before channels: a task that is sent in this turn is signed by the signer that counts now.
  'task signers',
  'workers authority',
  // Before any caller: whose tokens are taken.
  'worker issuers',
  // Before any caller: who signs, and before channels: which roots they send.
  'outside issuers',
  'issuer migrations',
  // Before any caller: who signed the certificate that it presents.
  'outside authorities',
  'roots of issuers',
  // Before the lists of programs, which go out with them.
  'outside roots of programs',
  // Before channels: a node whose channel is cut and that comes back at once meets its denial.
  'deny-list',
  // Peers are sent in this turn what they are to drop; neither this nor the channels depend on each other.
  'peer book',
  'channels',
  'sightings',
  // Behind the channels: nothing is dispatched over one that this commit cuts.
  'tasks',
  // From here on nothing depends on the order, except that readers of the journal are woken when all of it is in force.
  'unresolved alerts',
  'operator key book',
  'known operator keys',
  'metrics',
  'failure watch',
  'revocation lists',
  'program lists',
  'listed outputs',
  'OCSP responders',
  'OCSP answers',
  'journal followers',
  'node alerts',
  'alert delivery',
  'claims',
  'issuer outbox',
] as const

export type FeedSubscriber = (typeof feedOrder)[number]

export type Feed = {
  publish(committed: Committed): void
  /** Several under one name act in the order in which they subscribed. The answer unsubscribes. */
  subscribe(name: FeedSubscriber, subscriber: (committed: Committed) => void): () => void
}

export const openFeed = (): Feed => {
  const subscribers = new Map<FeedSubscriber, Set<(committed: Committed) => void>>(
    feedOrder.map((name) => [name, new Set()]),
  )
  return {
    publish(committed) {
      const failures: unknown[] = []
      for (const named of subscribers.values()) {
        for (const subscriber of named) {
          try {
            subscriber(committed)
          } catch (error) {
            failures.push(error)
          }
        }
      }
      // After all have been called: a revocation cuts channels even if another subscriber fails.
      if (failures.length > 0) throw new AggregateError(failures, 'a commit failed at some subscribers')
    },
    subscribe(name, subscriber) {
      const named = subscribers.get(name)
      if (named === undefined) throw new Error(`${name} is not in the order of the feed`)
      named.add(subscriber)
      return () => void named.delete(subscriber)
    },
  }
}
