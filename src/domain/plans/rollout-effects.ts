// What a task for many nodes would mean, before it is queued: which of them take it, and which do not.

import { counted, durationWords } from '#domain/core/in-words.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { needsSecond, type TallyFacts } from '#domain/tasks/run-tally.ts'
import type { TaskSwitches } from '#domain/core/task-types.ts'
import { factsOf, subjectOf } from './plan-effects.ts'
import type { Plan, PlanAction, PlanEffect } from './plan.ts'

export type TasksAction = Extract<PlanAction, { kind: 'create-tasks' }>

/**
 * What each node would carry out. It is a line like the others, so that it is kept, shown to the operator who approves it, and compared
 * when the plan is applied.
 */
export const taskLineOf = ({ type, parameters, lifeMs, concurrency, failureLimit }: TasksAction): PlanEffect => ({
  subject: 'task',
  effect: `${type} ${JSON.stringify(parameters)}`,
  loses: null,
  unrecoverable: null,
  facts: [
    `each may wait ${durationWords(lifeMs)} for its node`,
    `${concurrency} at once`,
    `the rest is held after ${counted(failureLimit, 'failure')}`,
  ],
})

const takes = 'gets the task'

/** `barred`: why it would get none; null: it would. */
export const taskEffectOf = (node: Node, barred: Refusal | null): PlanEffect => ({
  subject: subjectOf(node),
  effect: barred === null ? takes : `nothing: ${barred.detail ?? barred.code}`,
  loses: null,
  unrecoverable: null,
  // Allocations come and go and decide nothing here.
  facts: factsOf({ ...node, allocations: 0 }),
})

/** The nodes that the rollout of such a plan is for. */
export const nodesThatTake = (effects: readonly PlanEffect[]): readonly NodeId[] =>
  effects.flatMap(({ subject, effect }) => (effect === takes ? [subject.slice('node '.length)] : []))

/** `own`: the lines that the plan would have if the one who applies it had made it. Null: that operator may queue all of it. */
export const barredForApplier = (effects: readonly PlanEffect[], own: readonly PlanEffect[]): Refusal | null => {
  const allowed = new Set(nodesThatTake(own))
  const barred = nodesThatTake(effects).filter((node) => !allowed.has(node))
  const [first] = barred
  if (first === undefined) return null
  const why = own.find(({ subject }) => subject === `node ${first}`)?.effect ?? 'nothing'
  const others = barred.length === 1 ? '' : `, and ${barred.length - 1} more`
  return refuse(
    'ROLE_FORBIDDEN',
    `who applies a plan has to be allowed to queue its tasks: ${first} gets ${why}${others}`,
  )
}

const approvalSubject = 'approval'

/** A line that says so where another operator than the one who made the plan has to apply it. */
export const approvalEffectOf = (
  { type }: TasksAction,
  nodes: number,
  tally: Omit<TallyFacts, 'of'>,
  limit: Pick<TaskSwitches, 'approveRunAbove'>,
): readonly PlanEffect[] =>
  !needsSecond(tally, limit, type, nodes)
    ? []
    : [
        {
          subject: approvalSubject,
          effect: 'another operator has to apply this plan',
          loses: null,
          unrecoverable: null,
          // Not how many: a plan is to become stale only where this line comes or goes.
          facts: [`run on more than ${limit.approveRunAbove} nodes within an hour`],
        },
      ]

export const needsApproval = ({ effects }: Pick<Plan, 'effects'>): boolean =>
  effects.some(({ subject }) => subject === approvalSubject)
