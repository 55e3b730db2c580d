// What operators do to a node that leaves its identity alone, and lets it back.

import { decideApprove, decideDeny } from '#domain/core/approval.ts'
import type { Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import { decideDrain, decideDrained, decideUndrain } from '#domain/fleet/drain.ts'
import type { NodeId } from '#domain/core/node.ts'
import { decideRelease } from '#domain/revocation/quarantine.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type NodeAction = 'drain' | 'drained' | 'undrain' | 'release' | 'approve' | 'deny'

export const changeNode = (
  deps: FlowCore,
  id: NodeId,
  action: NodeAction,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(deps, async () => {
    const node = await deps.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    return decide(deps, action, { node, by, nowMs: deps.clock.nowMs() })
  })

const decide = async ({ store }: FlowCore, action: NodeAction, facts: NodeFacts): Promise<NodeDecided | Refusal> => {
  switch (action) {
    case 'drain':
      return decideDrain({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'drained':
      return decideDrained({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'undrain':
      return decideUndrain({ ...facts, allocations: await liveAllocations(store, facts.node.value.id) })
    case 'release':
      return decideRelease(facts)
    case 'deny':
      return decideDeny(facts)
    case 'approve': {
      const { profile: name } = facts.node.value
      const profile = await store.get('profile', name)
      return profile === null ? refuse('PROFILE_NOT_FOUND', name) : decideApprove({ ...facts, profile })
    }
  }
}
