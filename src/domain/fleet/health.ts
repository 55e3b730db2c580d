// What health checkers say of a node. An unhealthy one keeps its identity and gets no new work.

import { decideClear, decideRaise, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { Condition } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type HealthReport =
  | { readonly state: 'unhealthy'; readonly reason: string; readonly evidence: Condition['evidence'] }
  | { readonly state: 'healthy' }

/** A checker says the same again and again: only what is new is written. */
export const decideHealth = (
  facts: NodeFacts & { readonly report: HealthReport },
): NodeDecided | Unchanged | Refusal => {
  const { report, ...about } = facts
  if (about.node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  return report.state === 'healthy'
    ? decideClear({ ...about, name: 'unhealthy' })
    : decideRaise({ ...about, name: 'unhealthy', reason: report.reason, evidence: report.evidence })
}
