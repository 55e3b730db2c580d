// What schedulers and health checkers use: where work may be placed, and which node is not well.

import { refuseField, type Refusal } from '#domain/core/refusal.ts'
import { hardwareProfiles } from './change-hardware.ts'
import { reportHealth } from './report-health.ts'
import { placeText, readPlace } from './scheduling-cursor.ts'
import { watchScheduling, type WatchSchedulingDeps } from './watch-scheduling.ts'
import { schedulingView } from './scheduling-view.ts'
import { HealthRequest } from '#wire/fleet/health-api.ts'
import { NodeDetail } from '#wire/api/operator-api.ts'
import { SchedulingAnswer, SchedulingQuery } from '#wire/fleet/scheduling-api.ts'
import { attributionOf, NodeParams, param } from '#plane/http/operator-call.ts'
import { detailOf, type NodeRoutesDeps } from '#plane/node/operator-node-routes.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type SchedulingRoutesDeps = NodeRoutesDeps & WatchSchedulingDeps

const usualPage = 500

export const operatorSchedulingRoutes = (deps: SchedulingRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/scheduling',
    access: 'viewer',
    summary:
      'Where work may be placed: all nodes first, then, from the cursor given, what changes; with wait_ms, waits',
    query: SchedulingQuery,
    answer: SchedulingAnswer,
    handle: (call) => watch(deps, call.query),
  },
  {
    method: 'POST',
    path: '/v1/nodes/:id/health',
    access: 'operator',
    summary: 'What a health checker has found: an unhealthy node gets no new work until it is healthy; safe to repeat',
    params: NodeParams,
    body: HealthRequest,
    answer: NodeDetail,
    handle: (call) => health(deps, call),
  },
]

const watch = async (deps: SchedulingRoutesDeps, query: SchedulingQuery): Promise<Answer | Refusal> => {
  const { vcluster = null, after, limit = usualPage, wait_ms: waitMs = 0 } = query
  const at = after === undefined ? null : readPlace(after)
  if (after !== undefined && at === null)
    return refuseField('REQUEST_INVALID', 'after', 'after is not a cursor of this watch')
  const page = await watchScheduling(deps, { vcluster, at, limit, waitMs })
  if (page.kind === 'refused') return page
  const profiles = await hardwareProfiles(deps.store)
  const nodes = page.nodes.map((node) => schedulingView(node, profiles))
  return answer({ nodes, next: placeText(page.next), more: page.more })
}

const health = async (deps: SchedulingRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const said = call.body as HealthRequest
  if (said.state === 'unhealthy' && said.reason === undefined) {
    return refuseField('REQUEST_INVALID', 'reason', 'an unhealthy node has a reason')
  }
  const { reason = '', evidence = {} } = said
  const report = said.state === 'healthy' ? { state: said.state } : { state: said.state, reason, evidence }
  const done = await reportHealth(deps, param(call, 'id'), report, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}
