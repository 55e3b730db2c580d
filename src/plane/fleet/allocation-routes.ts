// Work on nodes: what schedulers place and give back. What is taken from them they read in the journal.

import { type Allocation, decideGiveBack, decidePlace } from '#domain/fleet/allocation.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { allocationView, type AllocationListQuery, allocationApi } from '#wire/fleet/allocation-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Attribution } from '#domain/core/change.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'

const usualPage = 100

export const operatorAllocationRoutes = (core: FlowCore): readonly Route[] =>
  serve(allocationApi, {
    create: (call) => create(core, call),
    list: (call) => list(core.store, call.query),
    show: async (call) => {
      const found = await core.store.get('allocation', call.params.id)
      return found === null ? refuse('ALLOCATION_NOT_FOUND', call.params.id) : answer(allocationView(found.value))
    },
    release: async (call) => {
      const { reason = 'given back' } = call.body
      const done = await giveBackAllocation(core, call.params.id, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer(allocationView(done.allocation))
    },
  })

const create = async (core: FlowCore, call: CallOf<typeof allocationApi.create>) => {
  const wanted = call.body
  const done = await placeAllocation(core, wanted, attributionOf(call))
  return done.kind === 'refused' ? done : answer(allocationView(done.allocation), done.fresh ? 201 : 200)
}

const list = async (store: Store, query: AllocationListQuery) => {
  const { node, vcluster, state = 'live', after = null, limit = usualPage } = query
  const page = async (only: Allocation['state']['kind'] | null) => {
    const where = { ...(node && { node }), ...(vcluster && { vcluster }), ...(only && { state: only }) }
    return (await store.list('allocation', { where, after, limit })).map(({ value }) => value)
  }
  const found =
    state === 'live'
      ? inOrder([...(await page('running')), ...(await page('releasing'))]).slice(0, limit)
      : await page(state === 'all' ? null : state)
  if (found.length === 0) {
    if (node !== undefined && (await store.get('node', node)) === null) return refuse('NODE_NOT_FOUND', node)
    if (vcluster !== undefined && (await store.get('vcluster', vcluster)) === null)
      return refuse('VCLUSTER_NOT_FOUND', vcluster)
  }
  const last = found.at(-1)
  return answer({
    allocations: found.map(allocationView),
    next: found.length < limit || last === undefined ? null : last.id,
  })
}

/** By bytes, as the stores order their keys. An id met in both lists has changed in between: its newer state stays. */
const inOrder = (allocations: readonly Allocation[]): Allocation[] =>
  [...new Map(allocations.map((one) => [one.id, one])).values()].toSorted((one, other) => (one.id < other.id ? -1 : 1))

// Work is placed on a node and given back. What takes it away from its owner is the end of the node's identity
// (revocation/withdraw-identity.ts, identity/second-holder.ts, recovery/issue-repair-bundle.ts).

/** `fresh`: it was not in the store before. */
export type Placed = { readonly kind: 'placed'; readonly allocation: Allocation; readonly fresh: boolean }

export const placeAllocation = async (
  core: FlowCore,
  wanted: Pick<Allocation, 'id' | 'vcluster' | 'owner' | 'node'>,
  by: Attribution,
): Promise<Placed | Refusal> => {
  const { node: id, ...what } = wanted
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const existing = await core.store.get('allocation', wanted.id)
    return decidePlace({ node, wanted: what, existing, by, nowMs: core.clock.nowMs() })
  })
  if (done.kind === 'refused') return { ...done, about: { node: id, actor: by.actor } }
  return { kind: 'placed', allocation: done.allocation, fresh: done.kind === 'committed' }
}

export const giveBackAllocation = async (
  core: FlowCore,
  id: string,
  why: string,
  by: Attribution,
): Promise<{ readonly kind: 'given-back'; readonly allocation: Allocation } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const found = await core.store.get('allocation', id)
    if (found === null) return refuse('ALLOCATION_NOT_FOUND', id)
    // Its node never leaves the registry. Read before the rows of the decision: a change of either raises its version.
    const node = await core.store.get('node', found.value.node)
    const allocation = await core.store.get('allocation', id)
    if (node === null || allocation === null) throw new Error(`allocation ${id} has lost its node`)
    return decideGiveBack({ node, allocation, why, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'given-back', allocation: done.allocation }
}
