// Work on nodes, as schedulers and operators see it.

import { Type, type Static } from 'typebox'
import { allocationStates } from '#domain/fleet/allocation.ts'
import { NodeIdText } from '#wire/api/node-api.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

const AllocationIdText = Type.String({ pattern: '^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$' })
const VClusterName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })
/** Whoever is to hear of it: a scheduler's name, a tenant, a job. */
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
  { id: AllocationIdText, node: NodeIdText, vcluster: VClusterName, owner: Owner },
  closed,
)
export type CreateAllocationRequest = Static<typeof CreateAllocationRequest>

/** `GET /v1/allocations`. Without `state`: those that are not released. */
export const AllocationListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    vcluster: Type.Optional(VClusterName),
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

export const AllocationParams = Type.Object({ id: AllocationIdText }, closed)
