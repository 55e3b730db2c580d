// How operators see a node in the WireGuard network.

import { Type, type Static } from 'typebox'
import type { Node } from '#domain/core/node.ts'
import { peerOf } from '#domain/network/peer-set.ts'
import { orNull } from '#wire/core/shapes.ts'
import { PeerRevision, WireguardKeyText } from './peers.ts'

export const WireguardView = Type.Object({
  public_key: WireguardKeyText,
  address: Type.String(),
  /** As the node gave it, and as its peers get it; null: the node connects first. */
  endpoint: orNull(Type.String()),
  /** The group of its peers: `mesh`, or `isolated/VCLUSTER`; null: none at the moment. */
  group: orNull(Type.String()),
  /** The revision of the peers its agent has brought into force; null: not known. */
  applied_revision: orNull(PeerRevision),
})
export type WireguardView = Static<typeof WireguardView>

/** Whose nodes are its peers, and what of them its agent has brought into force. */
export type WireguardState = Readonly<Pick<WireguardView, 'group'> & { applied: WireguardView['applied_revision'] }>

/** Null: the node takes no part. */
export const wireguardView = (node: Node, { group, applied }: WireguardState): WireguardView | null => {
  const { wireguard } = node
  if (wireguard === null) return null
  const { publicKey, address } = wireguard
  return { public_key: publicKey, address, endpoint: peerOf(node)?.endpoint ?? null, group, applied_revision: applied }
}
