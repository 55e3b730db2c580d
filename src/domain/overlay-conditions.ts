// What an agent says of its overlay, as conditions of its node. Each state says all of it: what it no longer shows is over.

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

/** As much of it as is decided on. */
export type OverlayShown = {
  readonly applied: boolean
  readonly detail: string | null
  /** What is no longer what was applied, in words. */
  readonly drift: readonly string[]
}

export type OverlayFacts = NodeFacts & { readonly shown: OverlayShown }

const followed = ['overlay_failed', 'config_drift'] as const satisfies readonly ConditionName[]

export const decideOverlayShown = ({ node, shown, by, nowMs }: OverlayFacts): NodeDecided | Unchanged => {
  const { value } = node
  if (value.membership.kind === 'revoked') return { kind: 'unchanged' }
  const wanted = [...failure(shown, nowMs), ...drift(value, shown, nowMs)]
  const over = value.conditions.filter(
    ({ name }) => followed.some((one) => one === name) && !wanted.some((one) => one.name === name),
  )
  const raised = wanted.filter(({ name }) => !hasCondition(value, name))
  const standing = withoutConditions(
    value.conditions,
    over.map(({ name }) => name),
  )
  const [first, ...rest]: EntryDraft[] = [
    ...over.map((condition) => clearedEntry(value, condition, by, nowMs)),
    ...raised.map((condition) => raisedEntry(value, condition, by, nowMs)),
  ]
  if (first === undefined) return { kind: 'unchanged' }
  return nodeDecided(node, { ...value, conditions: raised.reduce(withCondition, standing) }, [first, ...rest])
}

const failure = ({ applied, detail }: OverlayShown, sinceMs: number): Condition[] =>
  applied
    ? []
    : [
        {
          name: 'overlay_failed',
          sinceMs,
          reason: 'what the node was told to run could not be put in place',
          evidence: { detail },
        },
      ]

/** In maintenance mode nothing is declared that it could drift from. */
const drift = ({ assignment }: Node, { drift: lines }: OverlayShown, sinceMs: number): Condition[] =>
  assignment === null || lines.length === 0
    ? []
    : [
        {
          name: 'config_drift',
          sinceMs,
          reason: `what runs there is no longer what ${assignment} asks for`,
          evidence: { first: lines[0] ?? null, differences: lines.length },
        },
      ]
