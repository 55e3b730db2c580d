// There are two holders of one identity: what becomes of them is committed before the refusal is told.

import { releaseAll } from '#domain/fleet/allocation.ts'
import type { Change } from '#domain/core/change.ts'
import type { DuplicateVerdict } from '#domain/identity/duplicate.ts'
import { withBesides } from '#domain/core/node-change.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { commitOnce, type CommitDeps } from '#plane/core/commit-decision.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { holderUnknown, type AwaitReturn } from './live-holder.ts'

export type DuplicateDeps = CommitDeps & {
  readonly store: Pick<Store, 'commit' | 'list'>
  readonly awaitReturn: AwaitReturn
}

type Duplicate = Exclude<DuplicateVerdict, { kind: 'claimant-stays' }>

/** `decide-again`: something had the time to change. Not rate-limited: a copy must not avoid being fenced by sending fast. */
export const settleDuplicate = async (
  deps: DuplicateDeps,
  node: NodeId,
  verdict: Duplicate,
): Promise<Refusal | 'lost-race' | 'decide-again'> => {
  if (verdict.change === null) return verdict.refusal
  // Only an operator undoes a fence. Whoever holds a copy must not be able to lay one by waiting for a plane to restart.
  const returned = verdict.kind === 'fenced' ? await deps.awaitReturn(node) : 'nothing'
  if (returned === 'unknown') return holderUnknown(node)
  if (returned === 'waited') return 'decide-again'
  const outcome = await commitOnce(deps, await wholeChange(deps, verdict, verdict.change))
  return outcome === 'lost-race' ? outcome : verdict.refusal
}

/** A node that is fenced loses its work with its identity, like any other in quarantine. */
const wholeChange = async (deps: DuplicateDeps, verdict: Duplicate, change: Change): Promise<Change> => {
  if (verdict.kind !== 'fenced') return change
  const allocations = await liveAllocations(deps.store, verdict.fence.node.value.id)
  const why = `its node was quarantined: ${verdict.fence.why}`
  return withBesides(change, releaseAll({ ...verdict.fence, allocations, why }))
}
