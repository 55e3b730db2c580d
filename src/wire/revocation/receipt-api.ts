// Receipts as operators see them: the proof that an identity was taken away (ruling 18). Times are RFC 3339, durations
// milliseconds since it was decided. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { receiptClocks, replicaProofs, withdrawalKinds } from '#domain/revocation/receipt.ts'
import { NodeIdText } from '#wire/api/node-api.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

const PeersView = Type.Object({
  /** How many had to drop the key: the sum of those below. */
  expected: Type.Integer(),
  /** Their agents have said that the set in force is one without it. */
  confirmed: Type.Integer(),
  /** No longer waited for: no members any more, or the node was released and is back with its key. */
  left: Type.Integer(),
  /** Said nothing until their own certificates had ended. */
  ended: Type.Array(Type.String()),
  /** Waited for. `deadline`: the end of its certificate, before which it has to connect and is told. */
  stragglers: Type.Array(Type.Object({ node: Type.String(), deadline: orNull(Type.String()) })),
})

export const ReceiptView = Type.Object({
  id: Type.String(),
  kind: oneOf(withdrawalKinds),
  node: Type.String(),
  epoch: Type.Integer(),
  reason: Type.String(),
  by: Type.String(),
  decided_at: Type.String(),
  /** From then on nothing is accepted from that epoch of the node, by any replica. Null: not yet. */
  effective_at: orNull(Type.String()),
  /** Every peer has dropped the key too, or is no member any more. Null: not yet. */
  settled_at: orNull(Type.String()),
  /** Certificates denied, as issuer/serial. */
  certificates: Type.Array(Type.String()),
  channels_cut: Type.Integer(),
  /** `lease`: it did not answer, and its lease and the skew are over, so it serves no more. */
  replicas: Type.Array(
    Type.Object({
      replica: Type.Integer(),
      name: Type.String(),
      how: oneOf(replicaProofs),
      channels_cut: Type.Integer(),
      after_ms: Type.Integer(),
    }),
  ),
  /** Replicas that have not said they know of it: they hear of it, or their lease ends within 15 s. */
  replicas_unconfirmed: Type.Integer(),
  /** Null: the node had no WireGuard key. */
  peers: orNull(PeersView),
  latency: Type.Object({
    effective_ms: orNull(Type.Integer()),
    /** When the last replica that had a channel of it said so. */
    last_channel_cut_ms: orNull(Type.Integer()),
    last_peer_ms: orNull(Type.Integer()),
    clocks: oneOf(receiptClocks),
  }),
  journal: orNull(Type.String({ description: 'cursor of the journal entry of the withdrawal' })),
})
export type ReceiptView = Static<typeof ReceiptView>

/** `open`: only those that are not settled. */
export const ReceiptListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    open: Type.Optional(Type.Boolean()),
    after: Type.Optional(Type.String({ pattern: '^[0-9A-Za-z]{1,64}$' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)

export const ReceiptListAnswer = Type.Object({
  /** Oldest first. */
  receipts: Type.Array(ReceiptView),
  next: orNull(Type.String()),
})

export const mostReceiptWaitMs = 30_000

/** Waits until it is settled, but no longer than that. */
export const ReceiptQuery = Type.Object(
  { wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: mostReceiptWaitMs })) },
  closed,
)
