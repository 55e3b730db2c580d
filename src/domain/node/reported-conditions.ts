// Conditions an agent claims of its own node. What it no longer claims is over: one report says all of them.

import { reconcileConditions, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { Condition, ConditionName } from '#domain/core/node.ts'

export const reportedConditions = [
  'clock_skew',
  'disk_full',
  'node_observability_disk_pressure',
  'endpoint_profile_drift',
  'recovery_enrollment_blocked',
] as const satisfies readonly ConditionName[]
export type ReportedCondition = (typeof reportedConditions)[number]

export type ReportedFacts = NodeFacts & {
  readonly reported: readonly (Pick<Condition, 'reason' | 'evidence'> & { readonly name: ReportedCondition })[]
}

export const decideReported = ({ reported, ...facts }: ReportedFacts): NodeDecided | Unchanged =>
  reconcileConditions({ ...facts, about: reportedConditions, reported })
