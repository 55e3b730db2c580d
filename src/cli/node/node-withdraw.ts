// Taking the identity of nodes away, and waiting for the proof; for good, of several, only as planned.

import type { RevocationReason } from '#domain/core/certificate.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'
import { askReceipt, awaitReceipt, showReceipt, usualWait } from '#cli/revocation/receipt-lines.ts'
import { askEach, countFailed, failedRow } from './ask-each.ts'
import { changing, onNodes, type NodeVerbOptions } from './on-nodes.ts'

type Waiting = NodeVerbOptions & { readonly wait?: string | false }

type Ask = (plane: OperatorClient) => Promise<ReceiptView>

const withdraw = async (cli: Cli, options: GlobalOptions & Waiting, ask: Ask): Promise<void> => {
  const waitMs = waitOf(options)
  const plane = connect(cli, options)
  const receipt = await ask(plane)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, plane, receipt, waitMs))
}

/** Read before anything is sent: a mistake in it must not come after the deed. */
const waitOf = ({ wait }: Waiting): number => (wait === false ? 0 : durationOption('--wait', wait ?? usualWait))

type QuarantineOptions = Waiting & { readonly reason?: string }

export const nodeQuarantine = onNodes<QuarantineOptions>({
  verb: 'quarantine',
  kind: 'change-nodes',
  actionOn: changing((options) => ({ verb: 'quarantine', reason: reasonIn(options, 'quarantine') })),
  onIds: async (cli, options, ids) => {
    const body = { reason: reasonIn(options, 'quarantine') }
    const asked = (id: string) => ({ params: { id }, body, about: { ID: id } })
    const [id, ...more] = ids
    return id !== undefined && more.length === 0
      ? withdraw(cli, options, (plane) => plane.ask(nodeActionApi.quarantine, asked(id)))
      : quarantineEach(cli, options, ids, (plane, one) => plane.tryAsk(nodeActionApi.quarantine, asked(one)))
  },
})

const quarantineEach = async (
  cli: Cli,
  options: QuarantineOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<ReceiptView | Failure>,
): Promise<void> => {
  const waitMs = waitOf(options)
  const plane = connect(cli, options)
  const each = await askEach(ids, async (one) => {
    const receipt = await ask(plane, one)
    const open = !(receipt instanceof Failure) && receipt.effective_at === null && waitMs > 0
    return open ? askReceipt(plane, receipt.id, waitMs) : receipt
  })
  const results = each.map(({ done, exit: _exit, ...one }) => ({ ...one, receipt: done }))
  printer(cli, options).answer({ results }, (paint) =>
    renderHeadedTable(
      ['NODE', 'RESULT', 'DETAIL', 'RECEIPT'],
      results.map((result) => (result.receipt === null ? failedRow(result) : quarantinedRow(result.receipt))),
      paint,
    ),
  )
  if (results.some(({ receipt }) => receipt !== null && receipt.effective_at === null)) {
    printer(cli, options).note('not effective everywhere yet; see: muster receipt show RECEIPT --wait 30s')
    cli.exit.finish(exitCodes.notEffective)
  }
  countFailed(cli, options, each)
}

const quarantinedRow = ({ node, id, effective_at: at, latency }: ReceiptView): Cell[] => [
  node,
  at === null ? { text: 'not effective yet', colour: 'red' } : 'quarantined',
  at === null ? '' : `effective after ${latency.effective_ms ?? 0} ms`,
  id,
]

type RevokeOptions = Waiting & { readonly reason?: string; readonly reasonCode?: RevocationReason }

export const nodeRevoke = onNodes<RevokeOptions>({
  verb: 'revoke',
  kind: 'revoke-nodes',
  actionOn: (options, on) => ({ kind: 'revoke-nodes', ...on, ...revokeReasonIn(options) }),
  onIds: (cli, options, ids) => {
    const body = revokeReasonIn(options)
    const [id, ...more] = ids
    if (id === undefined || more.length > 0) return null
    return withdraw(cli, options, (plane) =>
      plane.ask(nodeActionApi.revoke, { params: { id }, body, about: { ID: id } }),
    )
  },
})

/** The code is sent only where it is given: planes before 0.4 do not know it. */
const revokeReasonIn = (options: RevokeOptions) => ({
  reason: reasonIn(options, 'revoke'),
  ...(options.reasonCode === undefined ? {} : { reason_code: options.reasonCode }),
})

type DecommissionOptions = Waiting & { readonly force?: boolean }

export const nodeDecommission = onNodes<DecommissionOptions>({
  verb: 'decommission',
  kind: 'decommission-nodes',
  actionOn: ({ force = false }, on) => ({ kind: 'decommission-nodes', ...on, force }),
  onIds: (cli, options, ids) => {
    const body = options.force === true ? { force: true } : {}
    const [id, ...more] = ids
    if (id === undefined || more.length > 0) return null
    return withdraw(cli, options, (plane) =>
      plane.ask(nodeActionApi.decommission, { params: { id }, body, about: { ID: id } }),
    )
  },
})

type PurgeOptions = NodeVerbOptions & { readonly reason?: string }

/** Nothing is purged without a plan: what it removes cannot be had back. */
export const nodePurge = onNodes<PurgeOptions>({
  verb: 'purge',
  kind: 'purge-nodes',
  actionOn: (options, on) => ({ kind: 'purge-nodes', ...on, reason: reasonIn(options, 'purge') }),
  onIds: () => null,
})

const reasonIn = ({ reason }: { readonly reason?: string }, what: string): string => {
  if (reason === undefined) throw usageFailure('Why? The journal keeps it.', `muster node ${what} ID --reason REASON`)
  return reason
}
