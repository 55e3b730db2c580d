// What operators are told of a node's place in the WireGuard network.

import { Type, type Static } from 'typebox'
import { PeerRevision, WireguardKeyText } from './peers.ts'
import { orNull } from '#wire/core/shapes.ts'

export const WireguardView = Type.Object({
  public_key: WireguardKeyText,
  address: Type.String(),
  /** As the node gave it, and as its peers are told; null: it calls first. */
  endpoint: orNull(Type.String()),
  /** Whose nodes are its peers: `mesh`, or `isolated/VCLUSTER`; null: nobody's at the moment. */
  group: orNull(Type.String()),
  /** The revision of the peers its agent has brought into force; null: not known. */
  applied_revision: orNull(PeerRevision),
})
export type WireguardView = Static<typeof WireguardView>
