// Work is placed on a node and given back. What takes it away from its owner is the end of the node's identity
// (revocation/withdraw-identity.ts, identity/second-holder.ts, recovery/issue-repair-bundle.ts).

import { decideGiveBack, decidePlace, type Allocation } from '#domain/fleet/allocation.ts'
import type { Attribution } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export type AllocationDeps = CommitDeps & { readonly store: Pick<Store, 'get' | 'commit'>; readonly clock: Clock }

/** `fresh`: it was not on record before. */
export type Placed = { readonly kind: 'placed'; readonly allocation: Allocation; readonly fresh: boolean }

export const placeAllocation = async (
  deps: AllocationDeps,
  wanted: Pick<Allocation, 'id' | 'vcluster' | 'owner' | 'node'>,
  by: Attribution,
): Promise<Placed | Refusal> => {
  const { node: id, ...what } = wanted
  const done = await commitDecision(deps, async () => {
    const node = await deps.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const standing = await deps.store.get('allocation', wanted.id)
    return decidePlace({ node, wanted: what, standing, by, nowMs: deps.clock.nowMs() })
  })
  if (done.kind === 'refused') return { ...done, about: { node: id, actor: by.actor } }
  return { kind: 'placed', allocation: done.allocation, fresh: done.kind === 'committed' }
}

export const giveBackAllocation = async (
  deps: AllocationDeps,
  id: string,
  why: string,
  by: Attribution,
): Promise<{ readonly kind: 'given-back'; readonly allocation: Allocation } | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const found = await deps.store.get('allocation', id)
    if (found === null) return refuse('ALLOCATION_NOT_FOUND', id)
    // Its node never leaves the registry. Read before what is decided on: whatever changes either raises its version.
    const node = await deps.store.get('node', found.value.node)
    const allocation = await deps.store.get('allocation', id)
    if (node === null || allocation === null) throw new Error(`allocation ${id} has lost its node`)
    return decideGiveBack({ node, allocation, why, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'given-back', allocation: done.allocation }
}
