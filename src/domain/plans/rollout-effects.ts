// What a task for many nodes would mean, before it is queued: which of them take it, and which do not.

import type { Node, NodeId } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { factsOf, subjectOf } from './plan-effects.ts'
import type { Plan, PlanAction, PlanEffect } from './plan.ts'

export type TasksAction = Extract<PlanAction, { kind: 'create-tasks' }>

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

const approvalSubject = 'approval'

/** A line that says so where another operator than the one who made the plan has to apply it. */
export const approvalEffectOf = (
  { type }: TasksAction,
  nodes: number,
  approveRunAbove: number | null,
): readonly PlanEffect[] =>
  type !== 'run' || approveRunAbove === null || nodes <= approveRunAbove
    ? []
    : [
        {
          subject: approvalSubject,
          effect: 'another operator has to apply this plan',
          loses: null,
          unrecoverable: null,
          facts: [`run on more than ${approveRunAbove} nodes`],
        },
      ]

export const needsApproval = ({ effects }: Pick<Plan, 'effects'>): boolean =>
  effects.some(({ subject }) => subject === approvalSubject)
