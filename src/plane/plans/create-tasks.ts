// Tasks for many nodes: which of them would get one, and the rollout that begins when the plan is applied.

import { withPart, type Attribution, type Row } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import type { OperatorPrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { decideApplyPlan, type Plan, type PlanDecided, type PlanEffect } from '#domain/plans/plan.ts'
import {
  approvalEffectOf,
  needsApproval,
  nodesThatTake,
  taskEffectOf,
  type TasksAction,
} from '#domain/plans/rollout-effects.ts'
import { barredFrom } from '#domain/tasks/queue-task.ts'
import { rolloutBegun, type Rollout } from '#domain/tasks/rollout.ts'
import type { Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { parameterProblem } from '#plane/tasks/parameter-problem.ts'
import { queuerOnRecord } from '#plane/tasks/queuers.ts'

type ReadingCore = Pick<Core, 'store' | 'clock'>

/** By the rules that its own call has, on a snapshot. The leader asks them again when it comes to each node. */
export const effectsOfTasks = async (
  core: ReadingCore,
  action: TasksAction,
  rows: readonly Row<Node>[],
): Promise<readonly PlanEffect[] | Refusal> => {
  const { type, parameters } = action
  const problem = parameterProblem(type, parameters)
  if (problem !== null) return refuseField('TASK_PARAMETERS_INVALID', `action.${problem.path}`, problem.why)
  const { caller } = await queuerOnRecord(core, action.queuedBy)
  if (typeof caller === 'string') return refuse('OPERATOR_KEY_INVALID', caller)
  const { value: domain } = await domainSettingsRow(core.store)
  const names = new Set(rows.flatMap(({ value }) => value.assignment ?? []))
  const grounds = new Map(
    await Promise.all([...names].map(async (name) => [name, await core.store.get('vcluster', name)] as const)),
  )
  const lines = rows.map(({ value: node }) => {
    const vcluster = (node.assignment === null ? null : grounds.get(node.assignment))?.value ?? null
    return taskEffectOf(node, barredFrom({ caller, node, vcluster, domain, type }))
  })
  return [...lines, ...approvalEffectOf(action, nodesThatTake(lines).length, domain.tasks.approveRunAbove)]
}

/** Null: this operator may apply it. A second key that the first operator has made, or the reverse, is not a second operator. */
export const notApproved = async (
  { store }: Pick<ReadingCore, 'store'>,
  plan: Plan,
  approver: Pick<OperatorPrincipal, 'id'>,
): Promise<Refusal | null> => {
  if (plan.action.kind !== 'create-tasks' || !needsApproval(plan)) return null
  const keyOf = async (id: string) =>
    (await store.list('operator-key', { where: { id }, after: null, limit: 1 }))[0]?.value ?? null
  const [planned, applied] = await Promise.all([keyOf(plan.action.queuedBy.id), keyOf(approver.id)])
  const isSecond =
    planned !== null &&
    applied !== null &&
    planned.name !== applied.name &&
    applied.createdBy !== `operator:${planned.name}` &&
    planned.createdBy !== `operator:${applied.name}`
  return isSecond ? null : refuse('SECOND_OPERATOR_REQUIRED', `${plan.by} has planned ${plan.id}`)
}

export type TasksPlan = { readonly plan: Row<Plan>; readonly action: TasksAction; readonly now: readonly PlanEffect[] }

/** The rollout is in the commit that marks the plan as applied: neither is there without the other. */
export const beginRollout = (
  { plan, action, now }: TasksPlan,
  by: Attribution,
  correlation: string,
  nowMs: number,
): PlanDecided | Refusal => {
  const verdict = decideApplyPlan({ plan, now, by, nowMs })
  if (isRefusal(verdict)) return verdict
  const nodes = nodesThatTake(now)
  if (nodes.length === 0) return refuse('NODES_NOT_FOUND', 'none of the nodes may get this task')
  const { type, parameters, lifeMs, concurrency, failureLimit, queuedBy } = action
  const rollout: Rollout = {
    ...{ id: plan.value.id, type, parameters, lifeMs, nodes, concurrency, failureLimit, queuedBy },
    ...{ by: by.actor, createdAtMs: nowMs, correlation, reached: 0, refused: 0, forgiven: 0 },
    state: { kind: 'running' },
  }
  return { ...verdict, change: withPart(verdict.change, rolloutBegun(rollout, by, nowMs)) }
}
