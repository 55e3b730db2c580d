// Work on nodes, as schedulers and operators see it.

import { Type, type Static } from 'typebox'
import { allocationStates, type Allocation } from '#domain/fleet/allocation.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NameText, NodeIdText, oneOf, orNull } from '#wire/core/shapes.ts'

const AllocationIdText = Type.String({ pattern: '^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$' })
/** The owner of the work: a scheduler's name, a tenant, a job. */
const Owner = Type.String({ pattern: '^[!-~]{1,128}$' })

export const AllocationView = Type.Object({
  id: Type.String(),
  node: Type.String(),
  vcluster: Type.String(),
  owner: Type.String(),
  state: oneOf(allocationStates),
  created_at: Type.String(),
  created_by: Type.String(),
  /** Why it is asked for, or was released. */
  why: orNull(Type.String()),
  /** Since when it is asked for, or released. */
  changed_at: orNull(Type.String()),
  released_by: orNull(Type.String()),
  /** Taken from its owner. */
  forced: Type.Boolean(),
})
export type AllocationView = Static<typeof AllocationView>

/** `POST /v1/allocations`. Safe to repeat: the same id with the same content is answered as before. */
export const CreateAllocationRequest = Type.Object(
  { id: AllocationIdText, node: NodeIdText, vcluster: NameText, owner: Owner },
  closed,
)
export type CreateAllocationRequest = Static<typeof CreateAllocationRequest>

/** `GET /v1/allocations`. Without `state`: those that are not released. */
export const AllocationListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    vcluster: Type.Optional(NameText),
    state: Type.Optional(oneOf(['live', 'all', ...allocationStates])),
    after: Type.Optional(AllocationIdText),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
export type AllocationListQuery = Static<typeof AllocationListQuery>
export const AllocationListAnswer = Type.Object({
  allocations: Type.Array(AllocationView),
  next: orNull(Type.String()),
})

/** `POST /v1/allocations/{id}/release` */
export const ReleaseAllocationRequest = Type.Object(
  { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })) },
  closed,
)

const AllocationParams = Type.Object({ id: AllocationIdText }, closed)

export const allocationView = ({ id, node, vcluster, owner, state, ...made }: Allocation): AllocationView => ({
  id,
  node,
  vcluster,
  owner,
  state: state.kind,
  created_at: isoTime(made.createdAtMs),
  created_by: made.createdBy,
  why: state.kind === 'running' ? null : state.why,
  changed_at: state.kind === 'running' ? null : isoTime(state.atMs),
  released_by: state.kind === 'released' ? state.by : null,
  forced: state.kind === 'released' && state.forced,
})

export const allocationApi = {
  create: endpoint({
    method: 'POST',
    path: '/v1/allocations',
    access: 'operator',
    summary: 'Places work on a schedulable node of a vCluster; safe to repeat with the same id',
    body: CreateAllocationRequest,
    answer: AllocationView,
  }),
  list: endpoint({
    method: 'GET',
    path: '/v1/allocations',
    access: 'viewer',
    summary: 'Work on nodes, page by page in the order of the ids; without state, what is not released',
    query: AllocationListQuery,
    answer: AllocationListAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/allocations/:id',
    access: 'viewer',
    summary: 'One allocation; a released one stays on record for 30 days',
    params: AllocationParams,
    answer: AllocationView,
  }),
  release: endpoint({
    method: 'POST',
    path: '/v1/allocations/:id/release',
    access: 'operator',
    summary: 'Gives work back; the last of a node that drains ends the drain',
    params: AllocationParams,
    body: ReleaseAllocationRequest,
    answer: AllocationView,
  }),
}
