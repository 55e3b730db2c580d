// Commands that change nodes. Several nodes are changed one by one: each is its own transaction, and failures are listed.

import type { RevocationReason } from '#domain/core/certificate.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { asCalled, usageFailure, Failure } from '#cli/kit/failure.ts'
import { schedulingText } from './node-show.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts, renderTable, type Cell } from '#cli/kit/table.ts'
import { schedulingApi, type HealthRequest } from '#wire/fleet/scheduling-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { awaitReceipt, showReceipt, usualWait } from '#cli/revocation/receipt-lines.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import { computePlan, withPlan, type PlanOptions } from '#cli/plans/plan.ts'

type Change = 'undrain' | 'release' | 'approve' | 'deny'

const change =
  (action: Change) =>
  async (cli: Cli, options: GlobalOptions, id: string): Promise<void> =>
    showState(
      cli,
      options,
      await connect(cli, options).ask(nodeActionApi[action], { params: { id }, about: { ID: id } }),
    )

export const nodeUndrain = change('undrain')
export const nodeRelease = change('release')
export const nodeApprove = change('approve')
export const nodeDeny = change('deny')

export const nodeDrain = async (cli: Cli, options: GlobalOptions & { done?: boolean }, id: string): Promise<void> => {
  const body = options.done === true ? { done: true } : {}
  const plane = connect(cli, options)
  showState(cli, options, await plane.ask(nodeActionApi.drain, { params: { id }, body, about: { ID: id } }))
}

export const nodeSettle = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason: string },
  id: string,
): Promise<void> => {
  const body = { reason: options.reason }
  const plane = connect(cli, options)
  showState(cli, options, await plane.ask(nodeActionApi.settle, { params: { id }, body, about: { ID: id } }))
}

const showState = (cli: Cli, options: GlobalOptions, node: NodeDetail): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.membership],
      ['scheduling', schedulingText(node.scheduling)],
      ['why', node.why],
    ]).map((line) => asCalled(line, cli.program)),
  )
}

type NodeHealthOptions = GlobalOptions & {
  readonly unhealthy?: boolean
  readonly ok?: boolean
  readonly reason?: string
}

export const nodeHealth = async (cli: Cli, options: NodeHealthOptions, id: string): Promise<void> => {
  const detail = await connect(cli, options).ask(schedulingApi.reportHealth, {
    params: { id },
    body: reportOf(options, id),
    about: { ID: id },
  })
  showState(cli, options, detail)
}

const reportOf = ({ unhealthy = false, ok = false, reason }: NodeHealthOptions, id: string): HealthRequest => {
  if (unhealthy === ok) throw usageFailure('Say either --unhealthy or --ok.', `muster node health ${id} --ok`)
  if (ok) return { state: 'healthy' }
  if (reason !== undefined) return { state: 'unhealthy', reason }
  throw usageFailure('An unhealthy node has a reason.', `muster node health ${id} --unhealthy --reason REASON`)
}

type To = GlobalOptions & { readonly to: string }
type Force = GlobalOptions & { readonly force?: boolean }

export const nodeAssign = (cli: Cli, options: To, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.assign, { params: { id }, body: { to: options.to }, about: { ID: id } }),
  )

export const nodeMove = (cli: Cli, options: To & Force, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.move, { params: { id }, body: { to: options.to, ...forced(options) }, about: { ID: id } }),
  )

export const nodeUnassign = (cli: Cli, options: Force, ids: readonly string[]): Promise<void> =>
  changeAll(cli, options, ids, (plane, id) =>
    plane.tryAsk(vclusterApi.unassign, { params: { id }, body: forced(options), about: { ID: id } }),
  )

const forced = ({ force }: Force) => (force === true ? { force: true } : {})

type Result = {
  readonly id: string
  /** As it is now; null: it failed. */
  readonly node: NodeDetail | null
  readonly code: string | null
  readonly detail: string | null
}

const atOnce = 8

const changeAll = async (
  cli: Cli,
  options: GlobalOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<NodeDetail | Failure>,
): Promise<void> => {
  const plane = connect(cli, options)
  const change = async (id: string): Promise<Result> => {
    const answer = await ask(plane, id)
    if (!(answer instanceof Failure)) return { id, node: answer, code: null, detail: null }
    // Of one there is nothing else to say; a key that is not valid fails all alike.
    if (ids.length === 1 || answer.exit === exitCodes.notAllowed) throw answer
    return { id, node: null, code: answer.code, detail: answer.detail ?? answer.message }
  }
  const results = await inParallel(ids, atOnce, change)
  const print = printer(cli, options)
  print.answer({ results }, (paint) => renderTable(results.map(rowOf), paint))
  const failed = results.filter(({ node }) => node === null).length
  if (failed === 0) return
  print.note(`${failed} of ${results.length} failed; next: see them with muster node show ID, and repeat for those`)
  cli.exit.finish(exitCodes.partly)
}

const rowOf = ({ id, node, code, detail }: Result): Cell[] =>
  node === null
    ? [id, { text: 'failed', colour: 'red' }, `${code} ${detail}`]
    : [id, node.vcluster === null ? 'in no vcluster' : `in ${node.vcluster}`, node.scheduling.state]

// Taking the identity of a node away, and waiting for the proof; of several only as planned.

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

type RevokeOptions = PlanOptions & Waiting & { readonly reason?: string; readonly reasonCode?: RevocationReason }

const revocation = (options: RevokeOptions, ids: readonly string[]) => ({
  kind: 'revoke-nodes' as const,
  nodes: named(ids, 'revoke'),
  ...reasonIn(options),
})

export const nodeRevoke = withPlan('revoke-nodes', revocation, async (cli: Cli, options: RevokeOptions, ids) => {
  const body = reasonIn(options)
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

/** The code is sent only where it is given: planes before 0.4 do not know it. */
const reasonIn = ({ reason, reasonCode }: RevokeOptions) => {
  if (reason === undefined) throw usageFailure('Why? The journal keeps it.', 'muster node revoke ID --reason REASON')
  return { reason, ...(reasonCode === undefined ? {} : { reason_code: reasonCode }) }
}
