// Work on nodes: what schedulers place and give back. What is taken from them they read in the journal.

import type { Static } from 'typebox'
import type { Allocation } from '#domain/fleet/allocation.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { giveBackAllocation, placeAllocation, type AllocationDeps } from './change-allocations.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { allocationView } from './allocation-view.ts'
import {
  AllocationListAnswer,
  AllocationListQuery,
  AllocationParams,
  AllocationView,
  CreateAllocationRequest,
  ReleaseAllocationRequest,
} from '#wire/fleet/allocation-api.ts'
import { attributionOf, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Call, type Route } from '#plane/http/route.ts'

export type AllocationRoutesDeps = AllocationDeps & { readonly store: Pick<Store, 'get' | 'commit' | 'list'> }

const usualPage = 100

export const operatorAllocationRoutes = (deps: AllocationRoutesDeps): readonly Route[] => [
  {
    method: 'POST',
    path: '/v1/allocations',
    access: 'operator',
    summary: 'Places work on a schedulable node of a vCluster; safe to repeat with the same id',
    body: CreateAllocationRequest,
    answer: AllocationView,
    handle: (call) => create(deps, call),
  },
  {
    method: 'GET',
    path: '/v1/allocations',
    access: 'viewer',
    summary: 'Work on nodes, page by page in the order of the ids; without state, what is not released',
    query: AllocationListQuery,
    answer: AllocationListAnswer,
    handle: (call) => list(deps, call.query),
  },
  {
    method: 'GET',
    path: '/v1/allocations/:id',
    access: 'viewer',
    summary: 'One allocation; a released one stays on record for 30 days',
    params: AllocationParams,
    answer: AllocationView,
    handle: async (call) => {
      const found = await deps.store.get('allocation', param(call, 'id'))
      return found === null ? refuse('ALLOCATION_NOT_FOUND', param(call, 'id')) : answer(allocationView(found.value))
    },
  },
  {
    method: 'POST',
    path: '/v1/allocations/:id/release',
    access: 'operator',
    summary: 'Gives work back; the last of a node that drains ends the drain',
    params: AllocationParams,
    body: ReleaseAllocationRequest,
    answer: AllocationView,
    handle: async (call) => {
      const { reason = 'given back' } = call.body as Static<typeof ReleaseAllocationRequest>
      const done = await giveBackAllocation(deps, param(call, 'id'), reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer(allocationView(done.allocation))
    },
  },
]

const create = async (deps: AllocationRoutesDeps, call: Call): Promise<Answer | Refusal> => {
  const wanted = call.body as CreateAllocationRequest
  const done = await placeAllocation(deps, wanted, attributionOf(call))
  return done.kind === 'refused' ? done : answer(allocationView(done.allocation), done.fresh ? 201 : 200)
}

const list = async ({ store }: AllocationRoutesDeps, query: AllocationListQuery): Promise<Answer> => {
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
