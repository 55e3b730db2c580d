// A receipt in words: what is proven, by whom, how fast, and who is still waited for; and waiting for it, with a line of
// progress where a person looks.

import { mostReceiptWaitMs, type ReceiptView, receiptApi } from '#wire/revocation/receipt-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import type { Print } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { counted } from '#domain/core/in-words.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const usualWait = '10s'

/** How often what is known is shown meanwhile. */
const stepMs = 1000

/** Until it is settled, or the time is over. */
export const awaitReceipt = async (
  cli: Cli,
  plane: OperatorClient,
  receipt: ReceiptView,
  waitMs: number,
): Promise<ReceiptView> => {
  let latest = receipt
  let shown = false
  for (let leftMs = waitMs; leftMs > 0 && latest.settled_at === null; leftMs -= stepMs) {
    if (cli.err.isTerminal) {
      cli.err.write(`\r\x1b[K${printable(`waiting: ${receiptProgress(latest)}`)}`)
      shown = true
    }
    latest = await askReceipt(plane, latest.id, Math.min(stepMs, leftMs))
  }
  if (shown) cli.err.write('\r\x1b[K')
  return latest
}

export const askReceipt = (plane: OperatorClient, id: string, waitMs: number): Promise<ReceiptView> =>
  plane.ask(receiptApi.show, {
    params: { id },
    query: { wait_ms: Math.min(waitMs, mostReceiptWaitMs) },
    about: { ID: id },
  })

/** Prints the receipt; one that is not effective yet is no success. */
export const showReceipt = (cli: Cli, print: Print, receipt: ReceiptView): void => {
  print.answer(receipt, () => receiptLines(receipt))
  const look = `muster receipt show ${receipt.id} --wait 30s`
  if (receipt.effective_at === null) {
    print.note(`not effective yet; the decision is committed, and a plane goes on collecting the proof: ${look}`)
    cli.exit.finish(exitCodes.notEffective)
  } else if (receipt.settled_at === null) print.note(`effective; some peers are still waited for: ${look}`)
}

type Fact = readonly [name: string, value: string | readonly string[]]

const done: Readonly<Record<ReceiptView['kind'], string>> = {
  revoke: 'revoked',
  quarantine: 'quarantined',
  decommission: 'decommissioned',
}

const receiptLines = (receipt: ReceiptView): string[] =>
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
    ...issuerFacts(receipt),
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

const issuerFacts = ({ at_issuers: at }: ReceiptView): readonly Fact[] => {
  if (at === undefined) return []
  const parts = [
    `${at.passed_on} revoked there`,
    ...(at.waiting === 0 ? [] : [`${at.waiting} on the way: muster issuer list`]),
    ...(at.given_up === 0 ? [] : [`${at.given_up} ended before the issuer answered`]),
  ]
  return [['at issuers', parts.join(', ')]]
}

/** The number of stragglers that are listed. */
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
