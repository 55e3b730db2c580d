// When each active node without a channel was last here. Kept in memory: the plane starts the count anew for everybody,
// so its own downtime never makes a node inactive.

import type { NodeId } from '#domain/node.ts'
import type { Clock } from '#platform/clock.ts'

export type Presence = {
  /** The node has no channel, and has just been heard of. */
  lastHere(node: NodeId): void
  /** The node has a channel, or is no longer active. */
  forget(node: NodeId): void
  /** Everybody not heard of for so long, longest first. */
  absentFor(ms: number): readonly { readonly node: NodeId; readonly silentMs: number }[]
  size(): number
}

export const openPresence = (clock: Clock): Presence => {
  // Insertion order is the order of time: an entry is deleted before it is set again.
  const lastMs = new Map<NodeId, number>()
  return {
    lastHere(node) {
      lastMs.delete(node)
      lastMs.set(node, clock.monotonicMs())
    },
    forget: (node) => void lastMs.delete(node),
    absentFor(ms) {
      const nowMs = clock.monotonicMs()
      const absent = []
      for (const [node, seenMs] of lastMs) {
        if (nowMs - seenMs < ms) break
        absent.push({ node, silentMs: nowMs - seenMs })
      }
      return absent
    },
    size: () => lastMs.size,
  }
}
