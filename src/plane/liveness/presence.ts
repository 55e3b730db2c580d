// When each active node without a channel was last connected. Kept in memory: the count starts again for all nodes when a replica
// begins to lead or was behind, so the plane's own downtime never makes a node inactive.

import type { NodeId } from '#domain/core/node.ts'
import type { Clock } from '#platform/clock.ts'

export type Presence = {
  /** The node has no channel, and was connected a moment ago. */
  lastHere(node: NodeId): void
  /** Its last channel on this replica has just ended. */
  left(node: NodeId, closedByHolder?: boolean): void
  /** The node has a channel, or is no longer active. */
  forget(node: NodeId): void
  /** How long it has been away; null for a node that is here, or is not awaited. */
  silentMs(node: NodeId): number | null
  /** How long ago its last channel on this replica ended; null: it has one, or had none of late. */
  leftMs(node: NodeId): number | null
  /** Its last channel on this replica was closed by the node itself, over the channel: it had not gone silent. */
  closedByHolder(node: NodeId): boolean
  /** The nodes that are absent for that long, longest first; at most that many. */
  absentFor(ms: number, most: number): readonly NodeId[]
  /** These nodes are absent, and at that (monotonic) time no others were. A node that was not known to be absent counts from now. */
  awaitOnly(absent: Iterable<NodeId>, atMs: number): void
  /** Forgets all absences. */
  startAnew(): void
  size(): number
}

/** The most departures that are remembered; more than the channels that a replica can hold. */
const mostRemembered = 100_000

export const openPresence = (clock: Clock): Presence => {
  const awaited = times(clock)
  const departed = times(clock)
  const closed = times(clock)
  return {
    lastHere: (node) => awaited.set(node),
    left(node, closedByHolder = false) {
      awaited.set(node)
      departed.set(node)
      departed.keepAtMost(mostRemembered)
      if (closedByHolder) closed.set(node)
      else closed.delete(node)
      closed.keepAtMost(mostRemembered)
    },
    forget(node) {
      awaited.delete(node)
      departed.delete(node)
      closed.delete(node)
    },
    silentMs: (node) => awaited.agoMs(node),
    leftMs: (node) => departed.agoMs(node),
    closedByHolder: (node) => closed.agoMs(node) !== null,
    absentFor: (ms, most) => awaited.olderThan(ms, most),
    awaitOnly(absent, atMs) {
      const now = new Set(absent)
      for (const node of awaited.upTo(atMs)) if (!now.has(node)) awaited.delete(node)
      for (const node of now) if (awaited.agoMs(node) === null) awaited.set(node)
    },
    startAnew: () => awaited.clear(),
    size: () => awaited.size(),
  }
}

/** When something last happened to each node. */
const times = (clock: Clock) => {
  // Insertion order is the order of time: an entry is deleted before it is set again.
  const atMs = new Map<NodeId, number>()
  return {
    set(node: NodeId): void {
      atMs.delete(node)
      atMs.set(node, clock.monotonicMs())
    },
    delete: (node: NodeId): void => void atMs.delete(node),
    agoMs(node: NodeId): number | null {
      const ms = atMs.get(node)
      return ms === undefined ? null : clock.monotonicMs() - ms
    },
    olderThan(ms: number, most: number): readonly NodeId[] {
      const nowMs = clock.monotonicMs()
      const older: NodeId[] = []
      for (const [node, thenMs] of atMs) {
        if (nowMs - thenMs < ms || older.length >= most) break
        older.push(node)
      }
      return older
    },
    keepAtMost(most: number): void {
      const [oldest] = atMs.keys()
      if (atMs.size > most && oldest !== undefined) atMs.delete(oldest)
    },
    *upTo(ms: number): Iterable<NodeId> {
      for (const [node, thenMs] of atMs) if (thenMs <= ms) yield node
    },
    clear: (): void => atMs.clear(),
    size: (): number => atMs.size,
  }
}
