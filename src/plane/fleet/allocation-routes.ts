// Work on nodes: what schedulers place and give back. What is taken from them they read in the journal.

import type { Allocation } from '#domain/fleet/allocation.ts'
import { refuse } from '#domain/core/refusal.ts'
import { giveBackAllocation, placeAllocation } from './change-allocations.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { allocationView, type AllocationListQuery, allocationApi } from '#wire/fleet/allocation-api.ts'
import { attributionOf, answer, type CallOf, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'

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
  const last = found.at(-1)
  return answer({
    allocations: found.map(allocationView),
    next: found.length < limit || last === undefined ? null : last.id,
  })
}

/** By bytes, as the stores order their keys. An id met in both lists has changed in between: its newer state stays. */
const inOrder = (allocations: readonly Allocation[]): Allocation[] =>
  [...new Map(allocations.map((one) => [one.id, one])).values()].toSorted((one, other) => (one.id < other.id ? -1 : 1))
