// When each active node without a channel was last here. Kept in memory: the plane starts the count anew for everybody,
// so its own downtime never makes a node inactive.

import type { NodeId } from '#domain/node.ts'
import type { Clock } from '#platform/clock.ts'

export type Presence = {
  /** The node has no channel, and has just been heard of. */
  lastHere(node: NodeId): void
  /** The node has a channel, or is no longer active. */
  forget(node: NodeId): void
  /** How long it has been away; null for a node that is here, or is not awaited. */
  silentMs(node: NodeId): number | null
  /** Everybody not heard of for so long, longest first; at most so many. */
  absentFor(ms: number, most: number): readonly NodeId[]
  size(): number
  /** Commits the end of a presence. `commit` is called at once. */
  leave(node: NodeId, commit: () => Promise<void>): Promise<void>
  /** Such a commit under way. A channel that opens has to wait for it: it would be open on a node that is not active. */
  leaving(node: NodeId): Promise<void> | null
}

export const openPresence = (clock: Clock): Presence => {
  // Insertion order is the order of time: an entry is deleted before it is set again.
  const lastMs = new Map<NodeId, number>()
  const commits = new Map<NodeId, Promise<void>>()
  return {
    lastHere(node) {
      lastMs.delete(node)
      lastMs.set(node, clock.monotonicMs())
    },
    forget: (node) => void lastMs.delete(node),
    silentMs(node) {
      const seenMs = lastMs.get(node)
      return seenMs === undefined ? null : clock.monotonicMs() - seenMs
    },
    absentFor(ms, most) {
      const nowMs = clock.monotonicMs()
      const absent: NodeId[] = []
      for (const [node, seenMs] of lastMs) {
        if (nowMs - seenMs < ms || absent.length >= most) break
        absent.push(node)
      }
      return absent
    },
    size: () => lastMs.size,
    leave(node, commit) {
      const underWay = commit().finally(() => commits.delete(node))
      // Whoever waits for it only waits: the trouble it may have had is its caller's.
      commits.set(
        node,
        underWay.catch(() => {}),
      )
      return underWay
    },
    leaving: (node) => commits.get(node) ?? null,
  }
}
