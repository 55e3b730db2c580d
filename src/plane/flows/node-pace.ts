// How much one node may make the plane write. A node in good standing needs little; one whose agent runs in circles, or
// that somebody has taken over, must not fill the disk of the plane.

import type { NodeId } from '#domain/node.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Clock } from '#platform/clock.ts'

export type NodePace = {
  /** Null: go on. Called once for everything a node asks to be written. */
  hurry(node: NodeId): Refusal | null
}

const windowMs = 60_000
/** A renewal, its first use and a few conditions come to far less. */
const mostInWindow = 60

export const openNodePace = (clock: Clock): NodePace => {
  let startedMs = clock.monotonicMs()
  // Emptied every minute, and never larger than the nodes that wrote something in it.
  let writes = new Map<NodeId, number>()
  return {
    hurry(node) {
      const nowMs = clock.monotonicMs()
      if (nowMs - startedMs >= windowMs) {
        startedMs = nowMs
        writes = new Map()
      }
      const count = (writes.get(node) ?? 0) + 1
      writes.set(node, count)
      if (count <= mostInWindow) return null
      const retryAfterMs = Math.max(1000, startedMs + windowMs - nowMs)
      return { ...refuse('RATE_LIMITED', 'this node has asked for very many changes'), retryAfterMs }
    },
  }
}
