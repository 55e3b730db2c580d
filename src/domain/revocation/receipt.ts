// The proof that an identity was taken away: which replicas know, what was cut, and which peers have dropped the key.
// Written with the withdrawal itself, and completed as the proofs come in (receipt-rules.ts).

import type { NodeId } from '#domain/core/node.ts'

export const withdrawalKinds = ['revoke', 'quarantine', 'decommission'] as const

export type Receipt = {
  /** Sorts by time. Replicas are asked about a withdrawal by it: its row reaches them in the commit that took effect. */
  readonly id: string
  readonly kind: (typeof withdrawalKinds)[number]
  readonly node: NodeId
  readonly epoch: number
  readonly reason: string
  readonly by: string
  readonly decidedAtMs: number
  /** Denied, as issuer/serial. */
  readonly certificates: readonly string[]
  readonly replicas: readonly ReplicaProof[]
  /** Null: the node had no WireGuard key. */
  readonly peers: PeerProof | null
  /** From then on nothing is accepted from that epoch of the node, by any replica. Null: not yet. */
  readonly effectiveAtMs: number | null
  /** When every peer had dropped the key or was no longer a member. Null: not yet. */
  readonly settledAtMs: number | null
  /**
   * What the times of its proofs were read from: the steady clock of the plane that decided, or also the wall clocks of
   * others, which went on where that one stopped.
   */
  readonly clocks: (typeof receiptClocks)[number]
}

export const receiptClocks = ['of the plane that decided', 'of several planes'] as const

export const replicaProofs = ['itself', 'acknowledged', 'lease'] as const

export type ReplicaProof = {
  readonly replica: number
  /** Host and process, for people. */
  readonly name: string
  /** `lease`: it did not answer, and no longer serves since its lease and the skew are over. */
  readonly how: (typeof replicaProofs)[number]
  /** How many channels it cut, as far as it has said so. */
  readonly channels: number
  readonly atMs: number
}

/** Every peer that had to drop the key is counted in one of these. */
export type PeerProof = {
  readonly publicKey: string
  /** Their agents have said that the set in force is one without it. */
  readonly confirmed: number
  readonly lastConfirmedAtMs: number | null
  /** No longer waited for: not members any more, or an operator released the node and its key. */
  readonly left: number
  /** Did not confirm before their own certificates ended: no member talks to them any more. */
  readonly ended: readonly NodeId[]
  readonly stragglers: readonly Straggler[]
}

/** A peer that has not said so. */
export type Straggler = {
  readonly node: NodeId
  /** By then it has connected and got the new set, or its certificate has ended. Null: not looked up yet. */
  readonly deadlineMs: number | null
}
