// What schedulers and health checkers use: where work may be placed, and which node is not well.

import { refuseField, refuse, type Refusal } from '#domain/core/refusal.ts'
import { hardwareProfiles } from './change-hardware.ts'
import { failedChecks } from './take-overlay-state.ts'
import { placeText, readPlace, watchScheduling } from './watch-scheduling.ts'
import { schedulingView, schedulingApi, type SchedulingQuery } from '#wire/fleet/scheduling-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import { detailOf, type NodeSources } from '#plane/node/operator-node-routes.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import { decideHealth, type HealthReport } from '#domain/fleet/scheduling.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'

type SchedulingParts = {
  readonly channels: NodeSources['channels']
  readonly peers: NodeSources['peers']
  readonly arrivals: Arrivals
}

const usualPage = 500

export const operatorSchedulingRoutes = (core: FlowCore, parts: SchedulingParts): readonly Route[] =>
  serve(schedulingApi, {
    watch: (call) => watch(core.store, parts.arrivals, call.query),
    reportHealth: (call) => health(core, parts, call),
  })

const watch = async (store: Store, arrivals: Arrivals, query: SchedulingQuery) => {
  const { vcluster = null, after, limit = usualPage, wait_ms: waitMs = 0 } = query
  const at = after === undefined ? null : readPlace(after)
  if (after !== undefined && at === null)
    return refuseField('REQUEST_INVALID', 'after', 'after is not a cursor of this watch')
  const unknown = vcluster === null ? null : await unknownVCluster(store, vcluster, at !== null)
  if (unknown !== null) return unknown
  const page = await watchScheduling(store, arrivals, { vcluster, at, limit, waitMs })
  if (page.kind === 'refused') return page
  const profiles = await hardwareProfiles(store)
  const nodes = page.nodes.map((node) => schedulingView(node, profiles))
  return answer({ nodes, next: placeText(page.next), more: page.more })
}

/** `begun`: a watch goes on when its vCluster is deleted, and tells which nodes have left it. */
const unknownVCluster = async (store: Store, name: string, begun: boolean): Promise<Refusal | null> => {
  const row = await store.get('vcluster', name)
  const isThere = row !== null && (begun || row.value.deletedAtMs === null)
  return isThere ? null : refuse('VCLUSTER_NOT_FOUND', name)
}

const health = async (core: FlowCore, sources: NodeSources, call: CallOf<typeof schedulingApi.reportHealth>) => {
  const said = call.body
  if (said.state === 'unhealthy' && said.reason === undefined) {
    return refuseField('REQUEST_INVALID', 'reason', 'an unhealthy node has a reason')
  }
  const { reason = '', evidence = {} } = said
  const report = said.state === 'healthy' ? { state: said.state } : { state: said.state, reason, evidence }
  const done = await reportHealth(core, call.params.id, report, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(core, sources, done.node))
}

// What a health checker has found out about a node.

const reportHealth = async (
  core: FlowCore,
  id: NodeId,
  report: HealthReport,
  by: Attribution,
): Promise<{ readonly kind: 'reported'; readonly node: Node } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = await decideReportedHealth(core, report, { node, by, nowMs: core.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, node: node.value } : verdict
  })
  return done.kind === 'refused' ? done : { kind: 'reported', node: done.node }
}

/** On what is read now; nothing is written. */
export const decideReportedHealth = async (
  { store }: Pick<FlowCore, 'store'>,
  report: HealthReport,
  facts: NodeFacts,
): Promise<NodeDecided | Unchanged | Refusal> =>
  decideHealth({
    ...facts,
    report,
    failedChecks: failedChecks((await store.observation(facts.node.value.id)).overlay),
  })
