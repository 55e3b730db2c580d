// Stops a replica that does not serve: while it is behind it acts on nothing, and goes on where it stopped once it has caught up.
// The clocks are read at every check, so that a process that slept past its lease notices before it does anything else.

import { storeInDoubt } from '#domain/continuity/continuity.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'

export type Gate = {
  serves(): boolean
  /** Null: new sessions are taken. */
  refusal(): Refusal | null
  /** Ends when this replica serves. Never, once its lease is over and no other comes. */
  opened(): Promise<void>
}

const retryAfterMs = 2000

export const openGate = (replicas: Pick<Replicas, 'standing' | 'onStanding'>): Gate => {
  let waiting: (() => void)[] = []
  const serves = (): boolean => replicas.standing().kind === 'serving'
  replicas.onStanding(() => {
    if (!serves()) return
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  })
  return {
    serves,
    refusal() {
      const standing = replicas.standing()
      if (standing.kind === 'serving') return null
      if (standing.kind === 'in-doubt') return storeInDoubt(standing.why)
      return { ...refuse('REPLICA_BEHIND'), retryAfterMs }
    },
    opened: () => (serves() ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))),
  }
}
