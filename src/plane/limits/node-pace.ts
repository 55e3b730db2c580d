// How much one node may make the plane write. A node in good standing needs little; one whose agent runs in circles, or
// that somebody has taken over, must not fill the disk of the plane.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'

export type NodePace = {
  /** Null: go on. Called once for everything that is asked in the name of a node, or of a token there is. */
  hurry(name: string): Refusal | null
}

const windowMs = 60_000
/** A renewal, its first use and a few conditions come to far less. */
const mostInWindow = 60

/** `replicas`: over how many a node may spread what it asks for; together they allow what one does. */
export const openNodePace = (clock: Clock, replicas: () => number): NodePace => {
  let startedMs = clock.monotonicMs()
  // Emptied every minute, and never larger than the nodes that wrote something in it.
  let writes = new Map<string, number>()
  return {
    hurry(name) {
      const nowMs = clock.monotonicMs()
      if (nowMs - startedMs >= windowMs) {
        startedMs = nowMs
        writes = new Map()
      }
      const count = (writes.get(name) ?? 0) + 1
      writes.set(name, count)
      if (count <= Math.ceil(mostInWindow / replicas())) return null
      const retryAfterMs = Math.max(1000, startedMs + windowMs - nowMs)
      return { ...refuse('RATE_LIMITED', 'this node has asked for very many changes'), retryAfterMs }
    },
  }
}
