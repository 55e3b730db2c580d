// What schedulers and health checkers use: where work may be placed, and which node is not well.

import { refuseField } from '#domain/core/refusal.ts'
import { hardwareProfiles } from './change-hardware.ts'
import { reportHealth } from './report-health.ts'
import { placeText, readPlace } from './scheduling-cursor.ts'
import { watchScheduling, type WatchSchedulingDeps } from './watch-scheduling.ts'
import { schedulingView, schedulingApi, type SchedulingQuery } from '#wire/fleet/scheduling-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import { detailOf, type NodeRoutesDeps } from '#plane/node/operator-node-routes.ts'

export type SchedulingRoutesDeps = NodeRoutesDeps & WatchSchedulingDeps

const usualPage = 500

export const operatorSchedulingRoutes = (deps: SchedulingRoutesDeps): readonly Route[] =>
  serve(schedulingApi, {
    watch: (call) => watch(deps, call.query),
    reportHealth: (call) => health(deps, call),
  })

const watch = async (deps: SchedulingRoutesDeps, query: SchedulingQuery) => {
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

const health = async (deps: SchedulingRoutesDeps, call: CallOf<typeof schedulingApi.reportHealth>) => {
  const said = call.body
  if (said.state === 'unhealthy' && said.reason === undefined) {
    return refuseField('REQUEST_INVALID', 'reason', 'an unhealthy node has a reason')
  }
  const { reason = '', evidence = {} } = said
  const report = said.state === 'healthy' ? { state: said.state } : { state: said.state, reason, evidence }
  const done = await reportHealth(deps, call.params.id, report, attributionOf(call))
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}
