// WireGuard peers over the channel. A set has a revision made from its content (domain/network/peer-set.ts), so every replica
// computes the same one and an agent that reconnects to any of them gets only what changed. An agent sends its revision only to
// a plane whose hello offers `peers`; the plane sends no set before that.

import { Type, type Static } from 'typebox'
import type * as domain from '#domain/network/peer-set.ts'

/** What a plane offers in its hello, and an agent in its own. */
export const peersCapability = 'peers'

/** 32 bytes, base64. */
export const WireguardKeyText = Type.String({ pattern: '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$' })

/** Hex of 32 bytes; of no peers at all: 64 zeros. */
export const PeerRevision = Type.String({ pattern: '^[0-9a-f]{64}$' })

/** `POST /v1/enroll`: the WireGuard part of a request. */
export const WireguardRequest = Type.Object(
  {
    public_key: WireguardKeyText,
    underlay_endpoint: Type.Union([
      Type.Object(
        {
          ipv6: Type.Union([Type.String({ maxLength: 45 }), Type.Null()]),
          ipv4: Type.Union([Type.String({ maxLength: 15 }), Type.Null()]),
          port: Type.Integer({ minimum: 1, maximum: 65_535 }),
        },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
  },
  { additionalProperties: false },
)
export type WireguardRequest = Static<typeof WireguardRequest>

/** A peer as WireGuard knows it. `node`: for people. */
export const Peer = Type.Object({
  node: Type.String({ maxLength: 63 }),
  public_key: WireguardKeyText,
  /** HOST:PORT with IPv6 in brackets; null: it calls first. */
  endpoint: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
  allowed_ips: Type.Array(Type.String({ maxLength: 49 }), { maxItems: 8 }),
})
export type Peer = Static<typeof Peer>

export const peerOnWire = ({ node, publicKey, endpoint, allowedIps }: domain.Peer): Peer => ({
  node,
  public_key: publicKey,
  endpoint,
  allowed_ips: [...allowedIps],
})

export const peerFromWire = ({
  node,
  public_key: publicKey,
  endpoint,
  allowed_ips: allowedIps,
}: Peer): domain.Peer => ({
  node,
  publicKey,
  endpoint,
  allowedIps,
})

/** In answers with a certificate, and in every configuration; null or left out: the node takes no part. */
export const WireguardConfig = Type.Object({
  /** The node's own address. */
  address: Type.String({ maxLength: 45 }),
  /** Of the whole network, e.g. fd12:3456:789a::/64: what is routed into the interface. */
  network: Type.String({ maxLength: 49 }),
  listen_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  mtu: Type.Integer({ minimum: 1280, maximum: 9000 }),
})
export type WireguardConfig = Static<typeof WireguardConfig>

/** The WireGuard part of an enrollment's answer, by the names of document 002. */
export const OverlayConfig = Type.Object({
  host_overlay_ipv6: Type.String({ maxLength: 45 }),
  network: Type.String({ maxLength: 49 }),
  listen_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  mtu: Type.Integer({ minimum: 1280, maximum: 9000 }),
  peers: Type.Array(Peer),
  /** False: they are more than fit; the channel brings all of them. */
  peers_complete: Type.Boolean(),
})
export type OverlayConfig = Static<typeof OverlayConfig>

/** Agent: the set in force here, which counts as confirmed. Null: none is, or it is not known which. */
export const PeersHave = { revision: Type.Union([PeerRevision, Type.Null()]) }

/** Agent: this set is in force, or why it is not. */
export const PeersApplied = {
  revision: PeerRevision,
  applied: Type.Boolean(),
  detail: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
}

/**
 * Plane: what changed since `base`; null: the whole set. Removals are applied before additions; an added key that is there
 * already has changed. A long set comes in parts, each of which is made on the one before (what came in an earlier part may
 * be removed by a later one), and of which all but the last say `more`: the agent applies them together, after the last,
 * but what they remove at once. `revision` is that of the set after the last part.
 */
export type PlanePeers = {
  base: string | null
  revision: string
  remove: string[]
  add: Peer[]
  more: boolean
}
