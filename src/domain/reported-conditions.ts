// Conditions an agent claims of its own node. What it no longer claims is over: one report says all of them.

import {
  clearedEntry,
  hasCondition,
  raisedEntry,
  withCondition,
  withoutConditions,
  type Unchanged,
} from './conditions.ts'
import type { EntryDraft } from './journal-entry.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from './node-change.ts'
import type { Condition, ConditionName, Node } from './node.ts'

export const reportedConditions = [
  'clock_skew',
  'disk_full',
  'node_observability_disk_pressure',
  'endpoint_profile_drift',
  'recovery_enrollment_blocked',
] as const satisfies readonly ConditionName[]
export type ReportedCondition = (typeof reportedConditions)[number]

export type ReportedFacts = NodeFacts & {
  readonly claimed: readonly (Pick<Condition, 'reason' | 'evidence'> & { readonly name: ReportedCondition })[]
}

export const decideReported = ({ node, claimed, by, nowMs }: ReportedFacts): NodeDecided | Unchanged => {
  const { value } = node
  if (value.membership.kind === 'revoked') return { kind: 'unchanged' }
  const over = value.conditions.filter(({ name }) => isReported(name) && !claimed.some((claim) => claim.name === name))
  const fresh = claimed.filter(
    ({ name }, index) => !hasCondition(value, name) && claimed.findIndex((claim) => claim.name === name) === index,
  )
  const raised = fresh.map(({ name, reason, evidence }): Condition => ({ name, sinceMs: nowMs, reason, evidence }))
  const conditions = raised.reduce(
    withCondition,
    withoutConditions(
      value.conditions,
      over.map(({ name }) => name),
    ),
  )
  const after: Node = { ...value, conditions }
  const [first, ...rest]: EntryDraft[] = [
    ...over.map((condition) => clearedEntry(value, condition, by, nowMs)),
    ...raised.map((condition) => raisedEntry(value, condition, by, nowMs)),
  ]
  return first === undefined ? { kind: 'unchanged' } : nodeDecided(node, after, [first, ...rest])
}

const isReported = (name: ConditionName): boolean => reportedConditions.some((reported) => reported === name)
