// Somebody used an identity that another holder has moved on from, or tried to take it while its holder is there.
// Nothing is taken from the node for it; it is written down where an operator looks.

import { hasCondition, withCondition } from '#domain/core/conditions.ts'
import { boundedText, entry } from '#domain/core/decision.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from '#domain/core/node-change.ts'
import type { Condition, ConditionName } from '#domain/core/node.ts'

export type SecondHolderFacts = NodeFacts & {
  readonly condition: Extract<ConditionName, 'spoof_suspected' | 'duplicate_identity'>
  readonly reason: string
  readonly evidence: Condition['evidence']
}

/** `known`: the condition stands already, and saying it again would only grow the journal. */
export const decideSecondHolder = (facts: SecondHolderFacts): NodeDecided | { readonly kind: 'known' } => {
  const { node, condition, evidence, by, nowMs } = facts
  const { membership, id, epoch } = node.value
  if (membership.kind === 'revoked' || hasCondition(node.value, condition)) return { kind: 'known' }
  const reason = boundedText(facts.reason)
  const raised = { name: condition, sinceMs: nowMs, reason, evidence }
  return nodeDecided(node, { ...node.value, conditions: withCondition(node.value.conditions, raised) }, [
    entry(by, nowMs, 'node.second_holder', { node: id, epoch }, { condition, reason, ...evidence }),
  ])
}
