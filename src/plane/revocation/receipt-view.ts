import type { Receipt } from '#domain/revocation/receipt.ts'
import { channelsCut, latencyOf, peersExpected } from '#domain/revocation/receipt-rules.ts'
import { isoTime } from '#platform/clock.ts'
import type { Cursor } from '#plane/store/contract/store.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'

/** `replicas`: how many there are now. `entry`: of the withdrawal, where it is at hand. */
export const receiptView = (receipt: Receipt, replicas: number, entry: Cursor | null): ReceiptView => {
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
    effective_at: timeOf(receipt.effectiveAtMs),
    settled_at: timeOf(receipt.settledAtMs),
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
            stragglers: peers.stragglers.map(({ node, deadlineMs }) => ({ node, deadline: timeOf(deadlineMs) })),
          },
    latency: {
      effective_ms: effectiveMs,
      last_channel_cut_ms: lastCutMs,
      last_peer_ms: lastPeerMs,
      clocks: receipt.clocks,
    },
    journal: entry,
  }
}

const timeOf = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))
