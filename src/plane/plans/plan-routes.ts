// Plan before harm: what an action would do is shown first, and done as it was shown or not at all.

import { type PlanAction, roleFor } from '#domain/plans/plan.ts'
import { roleAllows, type OperatorPrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { usualAtOnce, usualFailureLimit } from '#domain/tasks/rollout.ts'
import { usualTaskLifeMs } from '#domain/tasks/task.ts'
import { everyNodeSelected, type NodeSelector } from '#domain/fleet/node-selector.ts'
import { applyPlan, type Applied, type PlanParts, type StepDone } from './apply-plan.ts'
import { computePlan, type OtherAction, type PlanCore } from './compute-plan.ts'
import { receiptView } from '#wire/revocation/receipt-api.ts'
import { changeIn, type NodeSelection } from '#wire/plans/node-changes.ts'
import { planApi, planView, type PlanActionBody, type PlanApplied } from '#wire/plans/plan-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'

export const operatorPlanRoutes = (core: PlanCore, parts: PlanParts): readonly Route[] => {
  const underWay: UnderWay = new Map()
  return serve(planApi, {
    compute: async (call) => {
      const action = actionIn(call.body.action, call.principal)
      if (isRefusal(action)) return action
      const done = forbidden(call, action) ?? (await computePlan(core, parts, action, attributionOf(call)))
      return isRefusal(done) ? done : answer(planView(done.plan), 201)
    },
    show: async (call) => {
      const plan = await core.store.get('plan', call.params.id)
      return plan === null ? refuse('PLAN_NOT_FOUND', call.params.id) : answer(planView(plan.value))
    },
    progress: async (call) => {
      const { id } = call.params
      if ((await core.store.get('plan', id)) === null) return refuse('PLAN_NOT_FOUND', id)
      return answer(underWay.get(id) ?? { done: null, of: null })
    },
    apply: (call) => apply(core, parts, underWay, call),
  })
}

/** Plans that this replica applies now. */
type UnderWay = Map<string, { done: number; readonly of: number }>

const apply = async (core: PlanCore, parts: PlanParts, underWay: UnderWay, call: CallOf<typeof planApi.apply>) => {
  const { id } = call.params
  const plan = await core.store.get('plan', id)
  if (plan === null) return refuse('PLAN_NOT_FOUND', id)
  const no = forbidden(call, plan.value.action)
  if (no !== null) return no
  const progress = { done: 0, of: plan.value.effects.length }
  const onStep = (): void => {
    progress.done++
    underWay.set(id, progress)
  }
  try {
    const applier = { by: attributionOf(call), key: call.principal.id }
    const done = await applyPlan(core, parts, id, applier, onStep)
    return isRefusal(done) ? done : answer(planAppliedView(done, core.store.replicas.count()))
  } finally {
    // Of two calls only one has steps; the other must not end its count.
    if (underWay.get(id) === progress) underWay.delete(id)
  }
}

/** Who may not do it without a plan may not do it with one, and has none computed either. */
const forbidden = (
  { principal: { role } }: { readonly principal: OperatorPrincipal },
  action: PlanAction,
): Refusal | null => {
  const needs = roleFor(action)
  return roleAllows(role, needs) ? null : refuse('ROLE_FORBIDDEN', `needs ${needs}, has ${role}`)
}

const actionIn = (body: PlanActionBody, { id }: Pick<OperatorPrincipal, 'id'>): OtherAction | Refusal => {
  switch (body.kind) {
    case 'revoke-nodes':
    case 'decommission-nodes':
    case 'purge-nodes':
    case 'create-tasks':
      return onNodesIn(body, id)
    case 'change-nodes':
      return { kind: body.kind, select: selectorIn(body.select), change: changeIn(body.change) }
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
    case 'rotate-signer':
      return { kind: body.kind }
    case 'withdraw-signer':
      return { kind: body.kind, key: body.key, reason: body.reason }
  }
}

type OnNodesBody = Extract<
  PlanActionBody,
  { kind: 'revoke-nodes' | 'decommission-nodes' | 'purge-nodes' | 'create-tasks' }
>

const onNodesIn = (body: OnNodesBody, operator: string): OtherAction | Refusal => {
  const { nodes, select } = body
  if ((nodes === undefined) === (select === undefined)) {
    return refuseField('REQUEST_INVALID', 'action.nodes', 'an action on nodes has either nodes or select')
  }
  const on = { nodes: nodes ?? [], ...(select === undefined ? {} : { select: selectorIn(select) }) }
  switch (body.kind) {
    case 'revoke-nodes': {
      const { reason, reason_code: reasonCode } = body
      return { kind: body.kind, ...on, reason, ...(reasonCode === undefined ? {} : { reasonCode }) }
    }
    case 'decommission-nodes':
      return { kind: body.kind, ...on, force: body.force ?? false }
    case 'create-tasks': {
      const { type, parameters = {}, expires_in_ms: lifeMs = usualTaskLifeMs } = body
      const { concurrency = usualAtOnce, failure_limit: failureLimit = usualFailureLimit } = body
      const queuedBy = { kind: 'operator', id: operator } as const
      return { kind: body.kind, ...on, type, parameters, lifeMs, concurrency, failureLimit, queuedBy }
    }
    case 'purge-nodes': {
      // Others cannot be purged.
      const revoked = on.select === undefined ? {} : { select: { ...on.select, state: on.select.state ?? 'revoked' } }
      return { kind: body.kind, ...on, ...revoked, reason: body.reason }
    }
  }
}

const selectorIn = (selection: NodeSelection): NodeSelector => ({
  ...everyNodeSelected,
  ...selection,
})

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
