// Which vCluster a node belongs to. Forcing a node out of one takes its work from it in the same transaction.

import { releaseAll } from '#domain/fleet/allocation.ts'
import {
  decideAssign,
  decideMove,
  decideUnassign,
  type Destination,
  type LeaveFacts,
} from '#domain/fleet/assignment.ts'
import type { Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision, type Done, type OnlyIf } from '#plane/core/commit-decision.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import type { FlowCore } from '#plane/core/core.ts'

export const assignNode = (
  core: FlowCore,
  id: NodeId,
  to: string,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  changing(core, id, by, (facts) => decideAssignment(core, { verb: 'assign', to }, facts))

export const moveNode = (
  core: FlowCore,
  id: NodeId,
  { to, force }: { readonly to: string; readonly force: boolean },
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  changing(core, id, by, (facts) => decideAssignment(core, { verb: 'move', to, force }, facts))

export type AssignmentChange =
  | { readonly verb: 'assign'; readonly to: string }
  | { readonly verb: 'move'; readonly to: string; readonly force: boolean }
  | { readonly verb: 'unassign'; readonly force: boolean }

/** On what is read now; nothing is written. */
export const decideAssignment = async (
  core: Pick<FlowCore, 'store'>,
  change: AssignmentChange,
  facts: NodeFacts,
): Promise<NodeDecided | Refusal> => {
  switch (change.verb) {
    case 'assign':
      return decideAssign({ ...facts, to: await destination(core, change.to) })
    case 'move': {
      const { to, force } = change
      return decideMove({ ...(await leaving(core, facts, force, `moved to ${to}`)), to: await destination(core, to) })
    }
    case 'unassign':
      return decideUnassign({ ...(await leaving(core, facts, change.force, 'unassigned')), deleted: null })
  }
}

/** `deleted`: out of this vCluster only, which is being deleted. */
export const unassignNode = (
  core: FlowCore,
  id: NodeId,
  { force, deleted }: { readonly force: boolean; readonly deleted: string | null },
  by: Attribution,
  onlyIf: OnlyIf = () => null,
): Promise<Done<NodeDecided> | Refusal> =>
  changing(
    core,
    id,
    by,
    async (facts) =>
      onlyIf(facts.node.value) ?? decideUnassign({ ...(await leaving(core, facts, force, 'unassigned')), deleted }),
  )

const changing = (
  core: FlowCore,
  id: NodeId,
  by: Attribution,
  decide: (facts: NodeFacts) => Promise<NodeDecided | Refusal>,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    return node === null ? refuse('NODE_NOT_FOUND', id) : decide({ node, by, nowMs: core.clock.nowMs() })
  })

const destination = async ({ store }: Pick<FlowCore, 'store'>, name: string): Promise<Destination> => ({
  name,
  row: await store.get('vcluster', name),
})

const leaving = async (
  { store }: Pick<FlowCore, 'store'>,
  facts: NodeFacts,
  force: boolean,
  why: string,
): Promise<LeaveFacts> => {
  const { id, allocations: count } = facts.node.value
  const allocations = force && count > 0 ? await liveAllocations(store, id) : []
  return { ...facts, force, extraParts: releaseAll({ ...facts, allocations, why }) }
}
