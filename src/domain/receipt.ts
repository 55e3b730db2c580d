// The proof that an identity was taken away: which replicas know, what was cut, and which peers have dropped the key.
// Written with the withdrawal itself, and completed as the proofs come in.

import type { NodeId } from './node.ts'

export const withdrawalKinds = ['revoke', 'quarantine', 'decommission'] as const

export type Receipt = {
  readonly id: string
  readonly kind: (typeof withdrawalKinds)[number]
  readonly node: NodeId
  readonly epoch: number
  readonly reason: string
  readonly by: string
  readonly decidedAtMs: number
  /** The journal operation that took it away: what replicas are asked about. */
  readonly operation: string | null
  /** Denied, as issuer/serial. */
  readonly certificates: readonly string[]
  readonly replicas: readonly ReplicaProof[]
  readonly channelsCut: number
  /** Null: the node had no WireGuard key. */
  readonly peers: PeerProof | null
  /** From then on nothing is accepted from the node, by any replica. Null: not yet. */
  readonly effectiveAtMs: number | null
  /** Every peer has dropped the key too, or is no member any more. Null: not yet. */
  readonly settledAtMs: number | null
}

export type ReplicaProof = {
  readonly replica: number
  /** `lease`: it did not answer, and may not serve any more since its lease and the skew are over. */
  readonly how: 'itself' | 'acknowledged' | 'lease'
  readonly atMs: number
}

export type PeerProof = {
  readonly publicKey: string
  /** How many peers had to drop it, and how many have said so. */
  readonly expected: number
  readonly confirmed: number
  readonly lastConfirmedAtMs: number | null
  readonly stragglers: readonly Straggler[]
}

/** A peer that has not said so. */
export type Straggler = {
  readonly node: NodeId
  /** By then it has been told, or its certificate has ended and it is no member any more. */
  readonly deadlineMs: number
}
