// Plan before harm: what an action would do is shown first, and done as it was shown or not at all.

import { type PlanAction, roleFor } from '#domain/plans/plan.ts'
import { roleAllows, type OperatorPrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { applyPlan, type Applied, type PlanParts, type StepDone } from './apply-plan.ts'
import { computePlan, type PlanCore } from './compute-plan.ts'
import { receiptView } from '#wire/revocation/receipt-api.ts'
import { planApi, planView, type PlanActionBody, type PlanApplied } from '#wire/plans/plan-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'

export const operatorPlanRoutes = (core: PlanCore, parts: PlanParts): readonly Route[] =>
  serve(planApi, {
    compute: async (call) => {
      const action = actionIn(call.body.action)
      const done = forbidden(call, action) ?? (await computePlan(core, parts, action, attributionOf(call)))
      return isRefusal(done) ? done : answer(planView(done.plan), 201)
    },
    show: async (call) => {
      const plan = await core.store.get('plan', call.params.id)
      return plan === null ? refuse('PLAN_NOT_FOUND', call.params.id) : answer(planView(plan.value))
    },
    apply: (call) => apply(core, parts, call),
  })

const apply = async (core: PlanCore, parts: PlanParts, call: CallOf<typeof planApi.apply>) => {
  const { id } = call.params
  const plan = await core.store.get('plan', id)
  if (plan === null) return refuse('PLAN_NOT_FOUND', id)
  const done = forbidden(call, plan.value.action) ?? (await applyPlan(core, parts, id, attributionOf(call)))
  return isRefusal(done) ? done : answer(planAppliedView(done, core.store.replicas.count()))
}

/** Who may not do it without a plan may not do it with one, and has none computed either. */
const forbidden = (
  { principal: { role } }: { readonly principal: OperatorPrincipal },
  action: PlanAction,
): Refusal | null => {
  const needs = roleFor(action)
  return roleAllows(role, needs) ? null : refuse('ROLE_FORBIDDEN', `needs ${needs}, has ${role}`)
}

const actionIn = (body: PlanActionBody): PlanAction => {
  switch (body.kind) {
    case 'revoke-nodes':
      return {
        ...{ kind: body.kind, nodes: body.nodes, reason: body.reason },
        ...(body.reason_code === undefined ? {} : { reasonCode: body.reason_code }),
      }
    case 'decommission-nodes':
      return { kind: body.kind, nodes: body.nodes, force: body.force ?? false }
    case 'purge-nodes':
      return { kind: body.kind, nodes: body.nodes, reason: body.reason }
    case 'revoke-token':
      return { kind: body.kind, token: body.token }
    case 'delete-vcluster':
      return { kind: body.kind, vcluster: body.vcluster }
    case 'change-profile':
      return { kind: body.kind, profile: body.profile, set: body.set }
    case 'rotate-ca':
      return { kind: body.kind, compromised: body.compromised ?? null, reason: body.reason ?? 'rotated' }
    case 'drop-name':
      return { kind: body.kind, name: body.name }
  }
}

/** `replicas`: how many there are now. */
const planAppliedView = ({ plan, steps }: Applied, replicas: number): PlanApplied => ({
  plan: planView(plan),
  steps: steps.map((step) => stepView(step, replicas)),
})

const stepView = ({ subject, outcome }: StepDone, replicas: number): PlanApplied['steps'][number] =>
  outcome.kind === 'refused'
    ? { subject, done: false, code: outcome.code, detail: outcome.detail, receipt: null }
    : {
        subject,
        done: true,
        code: null,
        detail: null,
        receipt: outcome.receipt === null ? null : receiptView(outcome.receipt, replicas, null),
      }
