// Receipts as operators see them: the proof that an identity was taken away (ruling 18). Times are RFC 3339, durations
// milliseconds since it was decided. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { channelsCut, latencyOf, peersExpected } from '#domain/revocation/receipt-rules.ts'
import { receiptClocks, replicaProofs, withdrawalKinds, type Receipt } from '#domain/revocation/receipt.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, IdParams, NodeIdText, oneOf, orNull } from '#wire/core/shapes.ts'

const PeersView = Type.Object({
  /** How many had to drop the key: the sum of those below. */
  expected: Type.Integer(),
  /** Their agents have said that the set in force is one without it. */
  confirmed: Type.Integer(),
  /** No longer waited for: not members any more, or the node was released and has its key again. */
  left: Type.Integer(),
  /** Said nothing until their own certificates had ended. */
  ended: Type.Array(Type.String()),
  /** Waited for. `deadline`: the end of its certificate, before which it has to connect and get the new peer set. */
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
  /** When every peer had dropped the key or was no longer a member. Null: not yet. */
  settled_at: orNull(Type.String()),
  /** Certificates denied, as issuer/serial. */
  certificates: Type.Array(Type.String()),
  channels_cut: Type.Integer(),
  /** `lease`: it did not answer, and its lease and the skew are over, so it no longer serves. */
  replicas: Type.Array(
    Type.Object({
      replica: Type.Integer(),
      name: Type.String(),
      how: oneOf(replicaProofs),
      channels_cut: Type.Integer(),
      after_ms: Type.Integer(),
    }),
  ),
  /** Replicas that have not confirmed yet: they confirm, or their lease ends within 15 s. */
  replicas_unconfirmed: Type.Integer(),
  /** Null: the node had no WireGuard key. */
  peers: orNull(PeersView),
  /** Certificates of outside issuers: how many are revoked there, and how many still wait. Left out where there were none. */
  at_issuers: Type.Optional(
    Type.Object({ passed_on: Type.Integer(), waiting: Type.Integer(), given_up: Type.Integer() }),
  ),
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
const ReceiptListQuery = Type.Object(
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
const ReceiptQuery = Type.Object(
  { wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: mostReceiptWaitMs })) },
  closed,
)

/** `replicas`: how many there are now. `entry`: of the withdrawal, where it is at hand. `atIssuers`: null where nothing was signed outside. */
export const receiptView = (
  receipt: Receipt,
  replicas: number,
  entry: string | null,
  atIssuers: { readonly passedOn: number; readonly waiting: number; readonly givenUp: number } | null = null,
): ReceiptView => {
  const { effectiveMs, lastCutMs, lastPeerMs } = latencyOf(receipt)
  const { peers } = receipt
  return {
    id: receipt.id,
    kind: receipt.kind,
    node: receipt.node,
    epoch: receipt.epoch,
    reason: receipt.reason,
    by: receipt.by,
    decided_at: isoTime(receipt.decidedAtMs),
    effective_at: isoTimeOrNull(receipt.effectiveAtMs),
    settled_at: isoTimeOrNull(receipt.settledAtMs),
    certificates: [...receipt.certificates],
    channels_cut: channelsCut(receipt),
    replicas: receipt.replicas.map(({ replica, name, how, channels, atMs }) => ({
      replica,
      name,
      how,
      channels_cut: channels,
      after_ms: Math.max(0, atMs - receipt.decidedAtMs),
    })),
    replicas_unconfirmed: receipt.effectiveAtMs === null ? Math.max(1, replicas - receipt.replicas.length) : 0,
    peers:
      peers === null
        ? null
        : {
            expected: peersExpected(peers),
            confirmed: peers.confirmed,
            left: peers.left,
            ended: [...peers.ended],
            stragglers: peers.stragglers.map(({ node, deadlineMs }) => ({ node, deadline: isoTimeOrNull(deadlineMs) })),
          },
    ...(atIssuers !== null && {
      at_issuers: { passed_on: atIssuers.passedOn, waiting: atIssuers.waiting, given_up: atIssuers.givenUp },
    }),
    latency: {
      effective_ms: effectiveMs,
      last_channel_cut_ms: lastCutMs,
      last_peer_ms: lastPeerMs,
      clocks: receipt.clocks,
    },
    journal: entry,
  }
}

/** For the description of the calls that answer one. */
export const exampleReceipt = {
  id: '01KA2Q7Z6W3M8X9Y0Z1A2B3C4D',
  kind: 'revoke',
  node: 'gpu-001',
  epoch: 1,
  reason: 'compromised',
  by: 'operator:ada',
  decided_at: '2026-11-15T11:02:03.456Z',
  effective_at: '2026-11-15T11:02:03.471Z',
  settled_at: null,
  certificates: ['6f1d0c3b5a79e8f4021c3d5e7f9a0b1c2d3e4f50/5d0e8f1a2b3c4d5e6f708192a3b4c5d6'],
  channels_cut: 1,
  replicas: [
    { replica: 7, name: 'plane-a 4711', how: 'itself', channels_cut: 0, after_ms: 3 },
    { replica: 8, name: 'plane-b 815', how: 'acknowledged', channels_cut: 1, after_ms: 12 },
  ],
  replicas_unconfirmed: 0,
  peers: {
    expected: 5,
    confirmed: 4,
    left: 0,
    ended: [],
    stragglers: [{ node: 'gpu-007', deadline: '2026-11-16T04:00:00.000Z' }],
  },
  latency: { effective_ms: 15, last_channel_cut_ms: 12, last_peer_ms: 64, clocks: 'of the plane that decided' },
  journal: 'bWFpbjo0Mg',
}

export const receiptApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/receipts',
    access: 'viewer',
    summary: 'The proofs that identities were taken away, oldest first, page by page',
    query: ReceiptListQuery,
    answer: ReceiptListAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/receipts/:id',
    access: 'viewer',
    summary: 'One of them; with wait_ms, waits until every peer has dropped the key',
    params: IdParams,
    query: ReceiptQuery,
    answer: ReceiptView,
  }),
}
