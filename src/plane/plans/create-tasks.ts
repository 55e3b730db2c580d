// Tasks for many nodes: which of them would get one, and the rollout that begins when the plan is applied.

import { mergeParts, readOf, withPart, type Attribution, type Read, type Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { decideApplyPlan, type Plan, type PlanDecided, type PlanEffect } from '#domain/plans/plan.ts'
import {
  approvalEffectOf,
  needsApproval,
  nodesThatTake,
  taskEffectOf,
  taskLineOf,
  type TasksAction,
} from '#domain/plans/rollout-effects.ts'
import { areTwoOperators } from '#domain/plans/second-operator.ts'
import { barredFrom } from '#domain/tasks/queue-task.ts'
import { isTallied, tallied, type TallyFacts } from '#domain/tasks/run-tally.ts'
import { mostOpenRollouts, rolloutBegun, type Rollout } from '#domain/tasks/rollout.ts'
import type { TaskQueuer } from '#domain/tasks/task.ts'
import type { Core } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyRow } from '#plane/core/pages.ts'
import { parameterProblem } from '#plane/tasks/parameter-problem.ts'
import { applierOnRecord, queuerOnRecord, tallyOf } from '#plane/tasks/queuers.ts'

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
  const tally = { ...(await tallyOf(core.store, action.queuedBy)), nowMs: core.clock.nowMs() }
  return [taskLineOf(action), ...lines, ...approvalEffectOf(action, nodesThatTake(lines).length, tally, domain.tasks)]
}

/** Null: this operator may apply it. A key that came from one of the first operator's, or the reverse, is not a second operator. */
export const notApproved = async (
  { store }: Pick<ReadingCore, 'store'>,
  plan: Plan,
  approver: Pick<TaskQueuer, 'id'>,
): Promise<Refusal | null> => {
  if (plan.action.kind !== 'create-tasks' || !needsApproval(plan)) return null
  const { queuedBy } = plan.action
  const keys = await Array.fromAsync(everyRow(store, 'operator-key', ({ hash }) => hash))
  const planned = keys.find(({ id }) => id === queuedBy.id)
  const applied = keys.find(({ id }) => id === approver.id)
  return planned !== undefined && applied !== undefined && areTwoOperators(planned, applied, keys)
    ? null
    : refuse('SECOND_OPERATOR_REQUIRED', `${plan.by} has planned ${plan.id}${relationOf(planned, applied)}`)
}

type Key = { readonly id: string; readonly name: string }

const relationOf = (planned: Key | undefined, applied: Key | undefined): string => {
  if (planned === undefined || applied === undefined || planned.id === applied.id) return ''
  const how =
    planned.name === applied.name
      ? `both keys are named ${applied.name}`
      : `of the keys ${planned.name} and ${applied.name} one was made with the other, or may have been`
  return `; ${how}, so they count as one operator`
}

/** The keys that a rollout depends on, as it begins: one that is revoked at the same time wins the race. */
export const keysOfRollout = async (
  core: ReadingCore,
  { queuedBy }: TasksAction,
  appliedBy: Pick<TaskQueuer, 'id'>,
): Promise<{ readonly kind: 'good'; readonly reads: readonly Read[] } | Refusal> => {
  const planned = await queuerOnRecord(core, queuedBy)
  if (typeof planned.caller === 'string') return refuse('OPERATOR_KEY_INVALID', planned.caller)
  if (appliedBy.id === queuedBy.id) return { kind: 'good', reads: planned.reads }
  const applied = await applierOnRecord(core, appliedBy)
  if (typeof applied.caller === 'string') return refuse('OPERATOR_KEY_INVALID', applied.caller)
  return { kind: 'good', reads: [...planned.reads, ...applied.reads] }
}

export type TasksPlan = {
  readonly plan: Row<Plan>
  readonly action: TasksAction
  readonly now: readonly PlanEffect[]
  readonly tally: Omit<TallyFacts, 'nowMs'>
  readonly domain: Row<DomainSettings>
  /** Rollouts that are not over, counted up to the limit. */
  readonly open: number
  readonly appliedBy: Rollout['appliedBy']
  /** Of the keys of who planned it and who applies it. */
  readonly reads: readonly Read[]
}

/** What says whether its runs need another operator, and whether there is room for a rollout. */
export const countedRuns = async ({ store }: Pick<ReadingCore, 'store'>, { queuedBy }: TasksAction) => ({
  tally: await tallyOf(store, queuedBy),
  domain: await domainSettingsRow(store),
  open: (await store.list('task-rollout', { order: 'open', after: null, limit: mostOpenRollouts })).length,
})

/** The rollout is in the commit that marks the plan as applied: neither is there without the other. */
export const beginRollout = (
  { plan, action, now, tally, domain, open, appliedBy, reads }: TasksPlan,
  by: Attribution,
  correlation: string,
  nowMs: number,
): PlanDecided | Refusal => {
  const verdict = decideApplyPlan({ plan, now, by, nowMs })
  if (isRefusal(verdict)) return verdict
  if (open >= mostOpenRollouts) return refuse('ROLLOUTS_FULL', `${mostOpenRollouts} are running or held`)
  const nodes = nodesThatTake(now)
  if (nodes.length === 0) return refuse('NODES_NOT_FOUND', 'none of the nodes may get this task')
  const { type, parameters, lifeMs, concurrency, failureLimit, queuedBy } = action
  const rollout: Rollout = {
    ...{ id: plan.value.id, type, parameters, lifeMs, nodes: nodes.length, concurrency, failureLimit, queuedBy },
    ...{ by: by.actor, createdAtMs: nowMs, correlation, reached: 0, refused: 0, forgiven: 0 },
    ...{ lastRefused: null, stalledBy: null, appliedBy },
    state: { kind: 'running' },
  }
  // What another operator has approved does not count against the first.
  const counts = isTallied(domain.value.tasks, type) && !needsApproval(plan.value)
  const counted = counts ? tallied({ ...tally, nowMs }, nodes.length) : {}
  const relied = { reads: [readOf('domain', 'domain', domain), ...reads] }
  const parts = [rolloutBegun(rollout, nodes, by, nowMs), counted, relied]
  return { ...verdict, change: withPart(verdict.change, mergeParts(parts)) }
}
