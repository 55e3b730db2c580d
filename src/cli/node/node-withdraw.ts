// Taking the identity of a node away, and waiting for the proof; of several only as planned.

import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { awaitReceipt, showReceipt, usualWait } from '#cli/revocation/await-receipt.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { durationOption } from '#cli/kit/duration-option.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { computePlan, withPlan, type PlanOptions } from '#cli/plans/plan-run.ts'
import { printer } from '#cli/kit/print.ts'

type Waiting = { readonly wait?: string | false }

type Ask = (plane: OperatorClient) => Promise<ReceiptView>

const withdraw = async (cli: Cli, options: GlobalOptions & Waiting, ask: Ask): Promise<void> => {
  // Read before anything is sent: a mistake in it must not come after the deed.
  const waitMs = options.wait === false ? 0 : durationOption('--wait', options.wait ?? usualWait)
  const plane = connect(cli, options)
  const receipt = await ask(plane)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, plane, receipt, waitMs))
}

export const nodeQuarantine = (
  cli: Cli,
  options: GlobalOptions & Waiting & { readonly reason: string },
  id: string,
): Promise<void> =>
  withdraw(cli, options, (plane) =>
    plane.ask(nodeActionApi.quarantine, { params: { id }, body: { reason: options.reason }, about: { ID: id } }),
  )

type RevokeOptions = PlanOptions & Waiting & { readonly reason?: string }

const revocation = (options: RevokeOptions, ids: readonly string[]) => ({
  kind: 'revoke-nodes' as const,
  nodes: named(ids, 'revoke'),
  reason: reasonIn(options),
})

export const nodeRevoke = withPlan('revoke-nodes', revocation, async (cli: Cli, options: RevokeOptions, ids) => {
  const body = { reason: reasonIn(options) }
  const [id, ...more] = named(ids, 'revoke')
  return more.length === 0 && id !== undefined
    ? withdraw(cli, options, (plane) => plane.ask(nodeActionApi.revoke, { params: { id }, body, about: { ID: id } }))
    : computePlan(cli, options, revocation(options, ids))
})

type DecommissionOptions = PlanOptions & Waiting & { readonly force?: boolean }

const decommissioning = ({ force = false }: DecommissionOptions, ids: readonly string[]) => ({
  kind: 'decommission-nodes' as const,
  nodes: named(ids, 'decommission'),
  force,
})

export const nodeDecommission = withPlan(
  'decommission-nodes',
  decommissioning,
  async (cli: Cli, options: DecommissionOptions, ids) => {
    const [id, ...more] = named(ids, 'decommission')
    return more.length === 0 && id !== undefined
      ? withdraw(cli, options, (plane) =>
          plane.ask(nodeActionApi.decommission, {
            params: { id },
            body: options.force === true ? { force: true } : {},
            about: { ID: id },
          }),
        )
      : computePlan(cli, options, decommissioning(options, ids))
  },
)

const named = (ids: readonly string[], what: string): string[] => {
  if (ids.length === 0) throw usageFailure('Which node?', `muster node ${what} ID, or --apply PLAN`)
  return [...new Set(ids)]
}

const reasonIn = ({ reason }: RevokeOptions): string => {
  if (reason === undefined) throw usageFailure('Why? The journal keeps it.', 'muster node revoke ID --reason REASON')
  return reason
}
