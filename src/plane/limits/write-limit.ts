// How much one node may make the plane write. A healthy node needs little; one whose agent loops, or that is compromised, must not
// fill the disk of the plane.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import { openRateLimit } from './rate-limit.ts'

export type WriteLimit = {
  /** Null: go on. Called once for everything that is asked in the name of a node, or of a token there is. */
  take(name: string): Refusal | null
}

/** A renewal, its first use and a few conditions come to far less. */
const mostPerMinute = 60

/** `replicas`: over how many a node may spread what it asks for; together they allow what one does. */
export const openWriteLimit = (clock: Clock, replicas: () => number): WriteLimit => {
  const limit = openRateLimit(clock, () => ({
    perMinute: Infinity,
    perMinutePerKey: Math.ceil(mostPerMinute / replicas()),
  }))
  return {
    take(name) {
      if (limit.take(name) === 'within') return null
      const retryAfterMs = limit.retryAfterMs()
      return { ...refuse('RATE_LIMITED', 'this node has asked for very many changes'), retryAfterMs }
    },
  }
}
