// What is written of a receipt: with the withdrawal, and as its proofs come in. The journal says when it became effective,
// who was still to be waited for, and when there was nobody any more; not every proof.

import { readOf, type Row } from '#domain/core/change.ts'
import { decided, entry, type Decided } from '#domain/core/decision.ts'
import type { Besides } from '#domain/core/node-change.ts'
import type { Receipt } from './receipt.ts'
import { channelsCut, latencyOf, stragglersOf } from './receipt-rules.ts'

/** Goes into the transaction that takes the identity away. */
export const receiptOpened = (receipt: Receipt): Besides => ({
  reads: [readOf('receipt', receipt.id, null)],
  writes: [{ put: 'receipt', value: receipt }],
})

/** What the plane does by itself has no source. */
const collector = { actor: 'system:receipts', source: null, correlation: null } as const
/** Of those that are still waited for, so many are named. */
const mostNamed = 20

export type ReceiptFacts = { readonly before: Row<Receipt>; readonly receipt: Receipt; readonly nowMs: number }

/** Null: there is nothing that a reader of the journal would want to know. */
export const decideReceipt = ({ before, receipt, nowMs }: ReceiptFacts): Decided | null => {
  const { id, node, epoch } = receipt
  const { effectiveMs, lastPeerMs } = latencyOf(receipt)
  const say = (type: 'receipt.effective' | 'receipt.straggling' | 'receipt.settled', body: object) =>
    entry(collector, nowMs, type, { node, epoch }, { receipt: id, ...body })
  const waitsFor = stragglersOf(receipt)
  const entries = [
    ...(before.value.effectiveAtMs === null && receipt.effectiveAtMs !== null
      ? [
          say('receipt.effective', {
            after_ms: Math.round(effectiveMs ?? 0),
            channels_cut: channelsCut(receipt),
            replicas: receipt.replicas.map(({ replica, how }) => `${replica} ${how}`),
          }),
        ]
      : []),
    ...(replicasMissing(before.value, receipt) || deadlinesFound(before.value, receipt)
      ? [
          say('receipt.straggling', {
            replicas_heard_from: receipt.replicas.length,
            effective: receipt.effectiveAtMs !== null,
            peers: waitsFor.length,
            nodes: waitsFor.slice(0, mostNamed).map((straggler) => straggler.node),
          }),
        ]
      : []),
    ...(before.value.settledAtMs === null && receipt.settledAtMs !== null
      ? [
          say('receipt.settled', {
            peers_confirmed: receipt.peers === null ? 0 : receipt.peers.confirmed,
            peers_left: receipt.peers === null ? 0 : receipt.peers.left,
            peers_ended: receipt.peers === null ? 0 : receipt.peers.ended.length,
            last_peer_after_ms: lastPeerMs === null ? null : Math.round(lastPeerMs),
          }),
        ]
      : []),
  ] as const
  const [first, ...more] = entries
  if (first === undefined) return null
  return decided({
    reads: [readOf('receipt', id, before)],
    writes: [{ put: 'receipt', value: receipt }],
    entries: [first, ...more],
  })
}

/** Some replicas have answered, and others not: what is proven so far is kept for whoever goes on with it. */
const replicasMissing = (before: Receipt, receipt: Receipt): boolean =>
  receipt.effectiveAtMs === null && receipt.replicas.length > before.replicas.length

/** Once: from then on it is known who is waited for, and until when. */
const deadlinesFound = (before: Receipt, receipt: Receipt): boolean =>
  stragglersOf(before).some(({ deadlineMs }) => deadlineMs === null) &&
  stragglersOf(receipt).length > 0 &&
  stragglersOf(receipt).every(({ deadlineMs }) => deadlineMs !== null)
