// Plan before harm: what an action would do is shown first, and done as it was shown or not at all.

import { roleFor, type PlanAction } from '#domain/plans/plan.ts'
import { roleAllows } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { applyPlan, type ApplyPlanDeps } from './apply-plan.ts'
import { computePlan, type ComputePlanDeps } from './compute-plan.ts'
import { planAppliedView, planView } from './plan-view.ts'
import { EmptyRequest } from '#wire/api/operator-api.ts'
import { PlanApplied, PlanRequest, PlanView, type PlanActionBody } from '#wire/plans/plan-api.ts'
import { attributionOf, IdParams, operatorOf, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type PlanRoutesDeps = ComputePlanDeps & ApplyPlanDeps

export const operatorPlanRoutes = (deps: PlanRoutesDeps): readonly Route[] => [
  {
    method: 'POST',
    path: '/v1/plans',
    access: 'operator',
    summary: 'What an action would do: whom it concerns, who loses access when, what could not come back by itself',
    body: PlanRequest,
    answer: PlanView,
    handle: async (call) => {
      const action = actionIn((call.body as PlanRequest).action)
      const done = forbidden(call, action) ?? (await computePlan(deps, action, attributionOf(call)))
      return isRefusal(done) ? done : answer(planView(done.plan), 201)
    },
  },
  {
    method: 'GET',
    path: '/v1/plans/:id',
    access: 'viewer',
    summary: 'A plan as it was shown',
    params: IdParams,
    answer: PlanView,
    handle: async (call) => {
      const plan = await deps.store.get('plan', param(call, 'id'))
      return plan === null ? refuse('PLAN_NOT_FOUND', param(call, 'id')) : answer(planView(plan.value))
    },
  },
  {
    method: 'POST',
    path: '/v1/plans/:id/apply',
    access: 'operator',
    summary: 'Does what the plan has shown, once; refused with what changed if anything has',
    params: IdParams,
    body: EmptyRequest,
    answer: PlanApplied,
    handle: (call) => apply(deps, call),
  },
]

const apply = async (deps: PlanRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const id = param(call, 'id')
  const plan = await deps.store.get('plan', id)
  if (plan === null) return refuse('PLAN_NOT_FOUND', id)
  const done = forbidden(call, plan.value.action) ?? (await applyPlan(deps, id, attributionOf(call)))
  return isRefusal(done) ? done : answer(planAppliedView(done, deps.store.replicas.count()))
}

/** Who may not do it without a plan may not do it with one, and has none computed either. */
const forbidden = (call: Call, action: PlanAction): Refusal | null => {
  const { role } = operatorOf(call)
  const needs = roleFor(action)
  return roleAllows(role, needs) ? null : refuse('ROLE_FORBIDDEN', `needs ${needs}, has ${role}`)
}

const actionIn = (body: PlanActionBody): PlanAction => {
  switch (body.kind) {
    case 'revoke-nodes':
      return { kind: body.kind, nodes: body.nodes, reason: body.reason }
    case 'decommission-nodes':
      return { kind: body.kind, nodes: body.nodes, force: body.force ?? false }
    case 'revoke-token':
      return { kind: body.kind, token: body.token }
    case 'delete-vcluster':
      return { kind: body.kind, vcluster: body.vcluster }
    case 'change-profile':
      return { kind: body.kind, profile: body.profile, set: body.set }
    case 'rotate-ca':
      return { kind: body.kind, compromised: body.compromised ?? null, reason: body.reason ?? 'rotated' }
  }
}
