// What a health checker has found out about a node.

import type { Attribution } from '#domain/core/change.ts'
import { decideHealth, type HealthReport } from '#domain/fleet/health.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export type HealthReportDeps = CommitDeps & { readonly store: Pick<Store, 'get' | 'commit'>; readonly clock: Clock }

export const reportHealth = async (
  deps: HealthReportDeps,
  id: NodeId,
  report: HealthReport,
  by: Attribution,
): Promise<{ readonly kind: 'reported'; readonly node: Node } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const node = await deps.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const verdict = decideHealth({ node, report, by, nowMs: deps.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, node: node.value } : verdict
  })
  return done.kind === 'refused' ? done : { kind: 'reported', node: done.node }
}
