// A node in the WireGuard network of its domain: its key, its address there, and where others reach it. The private key
// never leaves the node.

import type { NodeId } from './node.ts'

export type NodeWireguard = {
  /** 32 bytes, base64. */
  readonly publicKey: string
  /** Its IPv6 address in the network, in canonical text. */
  readonly address: string
  /** As the node gave it; the plane never connects to it (ruling 12). Null: it can only be reached after it has called. */
  readonly endpoint: UnderlayEndpoint | null
}

export type UnderlayEndpoint = {
  readonly ipv6: string | null
  readonly ipv4: string | null
  readonly port: number
}

/** Who has this key, or had it. A key is never another node's, also after its own was taken from it. */
export type WireguardKey = {
  readonly publicKey: string
  readonly node: NodeId
  readonly sinceMs: number
  /** No longer in use, and not available to another node. */
  readonly endedAtMs: number | null
  /** Ended by another key of the same node, which may come back to it. Left out: withdrawn with a revoked node, for good. */
  readonly replaced?: boolean
}

/** An address of the network that is or was in use. One that was given up rests before another node gets it. */
export type WireguardAddress = {
  readonly address: string
  readonly node: NodeId
  readonly sinceMs: number
  readonly releasedAtMs: number | null
}

export const addressRestMs = 24 * 3_600_000

export const wireguardModes = ['off', 'offered', 'required'] as const

/** Of a profile. `off`: a node's key is ignored. `offered`: a node that brings one takes part. `required`: no other is let in. */
export type WireguardPolicy = {
  readonly mode: (typeof wireguardModes)[number]
  readonly listenPort: number
  readonly mtu: number
}

export const noWireguard: WireguardPolicy = { mode: 'off', listenPort: 51_820, mtu: 1420 }
