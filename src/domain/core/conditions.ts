// Conditions: named facts about a node, one of each name, with since, reason and evidence.

import { boundedText, entry, type Attribution, nodeDecided, type NodeDecided, type NodeFacts } from './change.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Condition, ConditionName, Node } from './node.ts'

/** Nothing to write: it is so already. */
export type Unchanged = { readonly kind: 'unchanged' }

const mostEvidence = 8

export const hasCondition = (node: Node, name: ConditionName): boolean =>
  node.conditions.some((condition) => condition.name === name)

/** The first of a name stays as it was raised: repeating it must not make it look new. */
export const withCondition = (conditions: readonly Condition[], condition: Condition): readonly Condition[] =>
  conditions.some(({ name }) => name === condition.name) ? conditions : [...conditions, bounded(condition)]

export const withoutConditions = (
  conditions: readonly Condition[],
  names: readonly ConditionName[],
): readonly Condition[] => conditions.filter(({ name }) => !names.includes(name))

/** Evidence may come from a node, so its number of facts and their length are bounded. */
const bounded = (condition: Condition): Condition => ({
  ...condition,
  reason: boundedText(condition.reason),
  evidence: Object.fromEntries(
    Object.entries(condition.evidence)
      .slice(0, mostEvidence)
      .map(([name, value]) => [boundedText(name, 40), typeof value === 'string' ? boundedText(value, 128) : value]),
  ),
})

/** What the journal says when `withCondition` has added one. */
const raisedEntry = (node: Node, condition: Condition, by: Attribution, nowMs: number): EntryDraft => {
  const { name, reason, evidence } = bounded(condition)
  return entry(
    by,
    nowMs,
    'node.condition_raised',
    { node: node.id, epoch: node.epoch },
    {
      condition: name,
      reason,
      evidence: Object.entries(evidence).map(([fact, value]) => `${fact}=${value}`),
    },
  )
}

/** What the journal says when `withoutConditions` has taken one away. */
export const clearedEntry = (node: Node, { name, sinceMs }: Condition, by: Attribution, nowMs: number): EntryDraft =>
  entry(
    by,
    nowMs,
    'node.condition_cleared',
    { node: node.id, epoch: node.epoch },
    { condition: name, lasted_ms: nowMs - sinceMs },
  )

export type RaiseFacts = NodeFacts & Pick<Condition, 'name' | 'reason' | 'evidence'>

export const decideRaise = ({ node, name, reason, evidence, by, nowMs }: RaiseFacts): NodeDecided | Unchanged => {
  // A tombstone has no conditions: nothing about it matters to anyone who could act.
  if (node.value.membership.kind === 'revoked' || hasCondition(node.value, name)) return { kind: 'unchanged' }
  const condition: Condition = { name, sinceMs: nowMs, reason, evidence }
  const raised: Node = { ...node.value, conditions: withCondition(node.value.conditions, condition) }
  return nodeDecided(node, raised, [raisedEntry(raised, condition, by, nowMs)])
}

export type ClearFacts = NodeFacts & { readonly name: ConditionName }

export const decideClear = ({ node, name, by, nowMs }: ClearFacts): NodeDecided | Unchanged => {
  const condition = node.value.conditions.find((one) => one.name === name)
  if (condition === undefined) return { kind: 'unchanged' }
  const cleared: Node = { ...node.value, conditions: withoutConditions(node.value.conditions, [name]) }
  return nodeDecided(node, cleared, [clearedEntry(cleared, condition, by, nowMs)])
}

/** Of a name that is reported twice the first counts. */
export type ConditionReport = NodeFacts & {
  /** The conditions that the report covers. A report is complete: a covered condition that it omits is cleared. */
  readonly about: readonly ConditionName[]
  /** Of these the newest reason counts: with another reason the condition is raised anew, in the same change. */
  readonly newestReason?: readonly ConditionName[]
  readonly reported: readonly Pick<Condition, 'name' | 'reason' | 'evidence'>[]
}

export const reconcileConditions = (report: ConditionReport): NodeDecided | Unchanged => {
  const { node, about, newestReason = [], reported, by, nowMs } = report
  const { value } = node
  if (value.membership.kind === 'revoked') return { kind: 'unchanged' }
  const stays = (condition: Condition): boolean =>
    reported.some(
      ({ name, reason }) =>
        name === condition.name && (!newestReason.includes(name) || boundedText(reason) === condition.reason),
    )
  const over = value.conditions.filter((condition) => about.includes(condition.name) && !stays(condition))
  const isNew = (name: ConditionName): boolean =>
    !hasCondition(value, name) || over.some((condition) => condition.name === name)
  const raised = reported
    .filter(({ name }, at) => isNew(name) && reported.findIndex((one) => one.name === name) === at)
    .map(({ name, reason, evidence }): Condition => ({ name, sinceMs: nowMs, reason, evidence }))
  const [first, ...rest]: EntryDraft[] = [
    ...over.map((condition) => clearedEntry(value, condition, by, nowMs)),
    ...raised.map((condition) => raisedEntry(value, condition, by, nowMs)),
  ]
  if (first === undefined) return { kind: 'unchanged' }
  const remaining = withoutConditions(
    value.conditions,
    over.map(({ name }) => name),
  )
  return nodeDecided(node, { ...value, conditions: raised.reduce(withCondition, remaining) }, [first, ...rest])
}
