import type { Node } from '#domain/core/node.ts'
import { peerOf } from '#domain/network/peer-set.ts'
import type { PeerProofs } from '#plane/core/open-channels.ts'
import type { WireguardView } from '#wire/network/wireguard-view.ts'

export type WireguardStanding = Awaited<ReturnType<PeerProofs['standingOf']>>

/** Null: the node takes no part. */
export const wireguardView = (node: Node, { group, applied }: WireguardStanding): WireguardView | null => {
  const { wireguard } = node
  if (wireguard === null) return null
  const { publicKey, address } = wireguard
  return { public_key: publicKey, address, endpoint: peerOf(node)?.endpoint ?? null, group, applied_revision: applied }
}
