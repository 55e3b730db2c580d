// Commands that change nodes. Several nodes are changed one by one: each is its own transaction, and failures are listed.

import type { RevocationReason } from '#domain/core/certificate.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure, Failure } from '#cli/kit/failure.ts'
import { schedulingText } from './node-show.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts, renderTable, type Cell } from '#cli/kit/table.ts'
import { schedulingApi, type HealthRequest } from '#wire/fleet/scheduling-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import type { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { askReceipt, awaitReceipt, showReceipt, usualWait } from '#cli/revocation/receipt-lines.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import { onlyPlan, withPlan, type PlanOptions } from '#cli/plans/plan.ts'

type Change = 'undrain' | 'release' | 'approve' | 'deny'

const change =
  (action: Change) =>
  (cli: Cli, options: GlobalOptions, ids: readonly string[]): Promise<void> =>
    changeState(cli, options, ids, (plane, id) =>
      plane.tryAsk(nodeActionApi[action], { params: { id }, about: { ID: id } }),
    )

export const nodeUndrain = change('undrain')
export const nodeRelease = change('release')
export const nodeApprove = change('approve')
export const nodeDeny = change('deny')

export const nodeDrain = (
  cli: Cli,
  options: GlobalOptions & { done?: boolean },
  ids: readonly string[],
): Promise<void> => {
  const body = options.done === true ? { done: true } : {}
  return changeState(cli, options, ids, (plane, id) =>
    plane.tryAsk(nodeActionApi.drain, { params: { id }, body, about: { ID: id } }),
  )
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

/** Of one node all that is said of its state, of several a line each. */
const changeState = async (
  cli: Cli,
  options: GlobalOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<NodeDetail | Failure>,
): Promise<void> => {
  const [id, ...more] = ids
  if (id === undefined || more.length > 0) {
    const words = (node: NodeDetail): Cell[] => [node.membership, schedulingText(node.scheduling)]
    return changeAll(cli, options, ids, ask, words)
  }
  const answer = await ask(connect(cli, options), id)
  if (answer instanceof Failure) throw answer
  showState(cli, options, answer)
}

export const showState = (cli: Cli, options: GlobalOptions, node: NodeDetail): void => {
  printer(cli, options).answer(node, () =>
    renderFacts([
      ['node', node.id],
      ['state', node.membership],
      ['scheduling', schedulingText(node.scheduling)],
      ['why', node.why],
    ]).map((line) => cli.hints.asCalled(line)),
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

/** What became of one of several. */
type Asked<T> = {
  readonly id: string
  /** Null: it was refused, for the reason below. */
  readonly done: T | null
  readonly code: string | null
  readonly detail: string | null
  readonly exit: ExitCode
}

const askEach = <T>(ids: readonly string[], ask: (id: string) => Promise<T | Failure>): Promise<readonly Asked<T>[]> =>
  inParallel([...new Set(ids)], atOnce, async (id) => {
    const answer = await ask(id)
    if (!(answer instanceof Failure)) return { id, done: answer, code: null, detail: null, exit: exitCodes.ok }
    // Of one there is nothing else to say; a key that is not valid fails all alike.
    if (ids.length === 1 || answer.exit === exitCodes.notAllowed) throw answer
    return { id, done: null, code: answer.code, detail: answer.detail ?? answer.message, exit: answer.exit }
  })

const changeAll = async (
  cli: Cli,
  options: GlobalOptions,
  ids: readonly string[],
  ask: (plane: OperatorClient, id: string) => Promise<NodeDetail | Failure>,
  words: (node: NodeDetail) => Cell[] = placeWords,
): Promise<void> => {
  const plane = connect(cli, options)
  const each = await askEach(ids, (id) => ask(plane, id))
  const results: Result[] = each.map(({ done, exit: _exit, ...one }) => ({ ...one, node: done }))
  printer(cli, options).answer({ results }, (paint) =>
    renderTable(
      results.map((result) => (result.node === null ? failedRow(result) : [result.id, ...words(result.node)])),
      paint,
    ),
  )
  countFailed(cli, options, each)
}

const placeWords = ({ vcluster, scheduling }: NodeDetail): Cell[] => [
  vcluster === null ? 'in no vcluster' : `in ${vcluster}`,
  scheduling.state,
]

const failedRow = ({ id, code, detail }: Pick<Result, 'id' | 'code' | 'detail'>): Cell[] => [
  id,
  { text: 'failed', colour: 'red' },
  `${code} ${detail}`,
]

const countFailed = (cli: Cli, options: GlobalOptions, each: readonly Asked<unknown>[]): void => {
  const failed = each.filter(({ done }) => done === null).length
  if (failed === 0) return
  printer(cli, options).note(
    `${failed} of ${each.length} failed; next: see them with muster node show ID, and repeat for those`,
  )
  // Such an order is no success, and is in force where it was given.
  const isPending = each.some(({ exit }) => exit === exitCodes.inForceHereOnly)
  cli.exit.finish(isPending ? exitCodes.inForceHereOnly : exitCodes.partly)
}

// Taking the identity of nodes away, and waiting for the proof; for good, of several, only as planned.

type Waiting = { readonly wait?: string | false }

type Ask = (plane: OperatorClient) => Promise<ReceiptView>

const withdraw = async (cli: Cli, options: GlobalOptions & Waiting, ask: Ask): Promise<void> => {
  const waitMs = waitOf(options)
  const plane = connect(cli, options)
  const receipt = await ask(plane)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, plane, receipt, waitMs))
}

export const nodeQuarantine = async (
  cli: Cli,
  options: GlobalOptions & Waiting & { readonly reason: string },
  ids: readonly string[],
): Promise<void> => {
  const asked = (id: string) => ({ params: { id }, body: { reason: options.reason }, about: { ID: id } })
  const [id, ...more] = ids
  if (id !== undefined && more.length === 0) {
    return withdraw(cli, options, (plane) => plane.ask(nodeActionApi.quarantine, asked(id)))
  }
  const waitMs = waitOf(options)
  const plane = connect(cli, options)
  const each = await askEach(ids, async (one) => {
    const receipt = await plane.tryAsk(nodeActionApi.quarantine, asked(one))
    const open = !(receipt instanceof Failure) && receipt.effective_at === null && waitMs > 0
    return open ? askReceipt(plane, receipt.id, waitMs) : receipt
  })
  const results = each.map(({ done, exit: _exit, ...one }) => ({ ...one, receipt: done }))
  printer(cli, options).answer({ results }, (paint) =>
    renderTable(
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
  `receipt ${id}`,
]

/** Read before anything is sent: a mistake in it must not come after the deed. */
const waitOf = ({ wait }: Waiting): number => (wait === false ? 0 : durationOption('--wait', wait ?? usualWait))

type RevokeOptions = PlanOptions & Waiting & { readonly reason?: string; readonly reasonCode?: RevocationReason }

const revocation = (options: RevokeOptions, ids: readonly string[]) => ({
  kind: 'revoke-nodes' as const,
  nodes: named(ids, 'revoke'),
  ...revokeReasonIn(options),
})

export const nodeRevoke = withPlan('revoke-nodes', revocation, async (cli: Cli, options: RevokeOptions, ids) => {
  const body = revokeReasonIn(options)
  const [id, ...more] = named(ids, 'revoke')
  return more.length === 0 && id !== undefined
    ? withdraw(cli, options, (plane) => plane.ask(nodeActionApi.revoke, { params: { id }, body, about: { ID: id } }))
    : onlyPlan(cli, options, revocation(options, ids))
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
      : onlyPlan(cli, options, decommissioning(options, ids))
  },
)

type PurgeOptions = PlanOptions & { readonly reason?: string }

const purge = (options: PurgeOptions, ids: readonly string[]) => ({
  kind: 'purge-nodes' as const,
  nodes: named(ids, 'purge'),
  reason: reasonIn(options, 'purge'),
})

/** Nothing is purged without a plan: what it removes cannot be had back. */
export const nodePurge = withPlan('purge-nodes', purge, (cli: Cli, options: PurgeOptions, ids) =>
  onlyPlan(cli, options, purge(options, ids)),
)

const named = (ids: readonly string[], what: string): string[] => {
  if (ids.length === 0) throw usageFailure('Which node?', `muster node ${what} ID, or --apply PLAN`)
  return [...new Set(ids)]
}

/** The code is sent only where it is given: planes before 0.4 do not know it. */
const revokeReasonIn = (options: RevokeOptions) => ({
  reason: reasonIn(options, 'revoke'),
  ...(options.reasonCode === undefined ? {} : { reason_code: options.reasonCode }),
})

const reasonIn = ({ reason }: { readonly reason?: string }, what: string): string => {
  if (reason === undefined) throw usageFailure('Why? The journal keeps it.', `muster node ${what} ID --reason REASON`)
  return reason
}
