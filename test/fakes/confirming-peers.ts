// WireGuard peers that confirm when a test says so.

import type { NodeId } from '#domain/core/node.ts'
import type { PeerProofs } from '#plane/core/open-channels.ts'

export type ConfirmingPeers = PeerProofs & {
  /** Whose peers they are. */
  readonly groups: Map<NodeId, readonly NodeId[]>
  /** Who has dropped whatever key is asked about, and when. */
  readonly dropped: Map<NodeId, number>
}

export const confirmingPeers = (): ConfirmingPeers => {
  const groups = new Map<NodeId, readonly NodeId[]>()
  const dropped = new Map<NodeId, number>()
  return {
    groups,
    dropped,
    peersOf: (node) => groups.get(node) ?? [],
    peersWithout: async (_key, nodes) => new Map([...dropped].filter(([node]) => nodes.includes(node))),
    stateOf: async () => ({ group: null, applied: null }),
  }
}
