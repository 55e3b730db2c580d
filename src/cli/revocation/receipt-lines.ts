// A receipt in words: what is proven, by whom, how fast, and who is still waited for.

import { counted } from '#domain/core/duration-words.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { renderFacts } from '#cli/kit/table.ts'

type Fact = readonly [name: string, value: string | readonly string[]]

const done: Readonly<Record<ReceiptView['kind'], string>> = {
  revoke: 'revoked',
  quarantine: 'quarantined',
  decommission: 'decommissioned',
}

export const receiptLines = (receipt: ReceiptView): string[] =>
  renderFacts([
    ['node', `${receipt.node} ${done[receipt.kind]} by ${receipt.by}: ${receipt.reason}`],
    ['receipt', receipt.id],
    ['epoch', String(receipt.epoch)],
    ['decided', receipt.decided_at],
    ['effective', effectiveText(receipt)],
    ['certificates', certificatesText(receipt)],
    ['replicas', replicaLines(receipt)],
    ['channels cut', channelsText(receipt)],
    ...peerFacts(receipt),
    ['settled', receipt.settled_at ?? 'not yet'],
    ...(receipt.latency.clocks === 'of the plane that decided'
      ? []
      : [['times', 'read from the clocks of several planes'] as const]),
    ...(receipt.journal === null ? [] : [['journal', receipt.journal] as const]),
  ])

/** While it is waited for, on one line. */
export const receiptProgress = ({ effective_at, replicas, replicas_unconfirmed, peers }: ReceiptView): string => {
  const known = replicas.length + replicas_unconfirmed
  if (effective_at === null)
    return `${replicas.length} of ${counted(known, 'replica')} ${known === 1 ? 'has' : 'have'} it`
  if (peers === null) return 'effective'
  return `effective; ${peers.expected - peers.stragglers.length} of ${counted(peers.expected, 'peer')} dropped the key`
}

const effectiveText = ({ effective_at, latency, node, epoch }: ReceiptView): string =>
  effective_at === null
    ? 'not yet: a replica that has not said it knows of it may still accept the node'
    : `${effective_at}, after ${ms(latency.effective_ms)}: nothing is accepted from epoch ${epoch} of ${node} any more`

const certificatesText = ({ certificates }: ReceiptView): string | readonly string[] =>
  certificates.length === 0 ? 'none were valid' : certificates.map((certificate) => `denied ${certificate}`)

const replicaLines = ({ replicas, replicas_unconfirmed: missing, effective_at }: ReceiptView): readonly string[] => {
  if (replicas.length === 0 && missing === 0) return ['none had to be asked: it never had a certificate']
  const lines = replicas.map(
    ({ replica, name, how, after_ms }) => `replica ${replica} (${name}) ${hows[how]} after ${ms(after_ms)}`,
  )
  const waiting =
    missing === 0 ? [] : [`${counted(missing, 'replica')} not heard from; without an answer the lease ends within 17 s`]
  const total = effective_at === null ? replicas.length + missing : replicas.length
  return [`${replicas.length} of ${counted(total, 'replica')}`, ...lines, ...waiting]
}

const hows: Readonly<Record<ReceiptView['replicas'][number]['how'], string>> = {
  itself: 'decided it, and knew',
  acknowledged: 'acknowledged',
  lease: 'did not answer; its lease was over',
}

const channelsText = ({ channels_cut: cut, latency }: ReceiptView): string =>
  latency.last_channel_cut_ms === null ? String(cut) : `${cut}, the last after ${ms(latency.last_channel_cut_ms)}`

/** So many stragglers are listed. */
const mostListed = 20

const peerFacts = ({ peers, latency }: ReceiptView): readonly Fact[] => {
  if (peers === null) return []
  const { expected, confirmed, left, ended, stragglers } = peers
  const last = latency.last_peer_ms === null ? '' : `, the last after ${ms(latency.last_peer_ms)}`
  const more = stragglers.length - mostListed
  return [
    [
      'peers',
      [
        `${confirmed} of ${counted(expected, 'peer')} dropped the key${last}`,
        ...(left === 0
          ? []
          : [`${left} ${left === 1 ? 'is' : 'are'} no longer waited for: no member, or the node is back`]),
        ...(ended.length === 0 ? [] : [`said nothing until their certificates ended: ${ended.join(', ')}`]),
        ...stragglers
          .slice(0, mostListed)
          .map(({ node, deadline }) =>
            deadline === null ? `${node} has not said so yet` : `${node} is away; its certificate ends ${deadline}`,
          ),
        ...(more > 0 ? [`and ${more} more`] : []),
      ],
    ],
  ]
}
const ms = (value: number | null): string => `${value ?? '?'} ms`
