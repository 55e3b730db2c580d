// What a health checker has found out about a node.

import type { Attribution } from '#domain/core/change.ts'
import { decideHealth, type HealthReport } from '#domain/fleet/health.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const reportHealth = async (
  core: FlowCore,
  id: NodeId,
  report: HealthReport,
  by: Attribution,
): Promise<{ readonly kind: 'reported'; readonly node: Node } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = decideHealth({ node, report, by, nowMs: core.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, node: node.value } : verdict
  })
  return done.kind === 'refused' ? done : { kind: 'reported', node: done.node }
}
