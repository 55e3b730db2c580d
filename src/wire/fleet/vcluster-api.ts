// vClusters and who is in them, between operators and the plane. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { peerings } from '#domain/fleet/vcluster.ts'
import { NodeIdText } from '#wire/api/node-api.ts'
import { SetRequest } from '#wire/api/operator-api.ts'
import { OverlayFileBody, ServiceBody, OverlayBody } from './overlay.ts'
import { PolicyBody } from './policy-body.ts'
import { closed } from '#wire/core/shapes.ts'

const VClusterName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })

/** An overlay as an operator writes it: nothing in it is overlooked. */
const OverlayRequest = Type.Object(
  {
    files: Type.Array(Type.Object(OverlayFileBody.properties, closed), { maxItems: 128 }),
    services: Type.Array(Type.Object(ServiceBody.properties, closed), { maxItems: 32 }),
  },
  closed,
)

const Changes = { set: Type.Optional(SetRequest.properties.set), overlay: Type.Optional(OverlayRequest) }

/** `POST /v1/vclusters` */
export const CreateVClusterRequest = Type.Object({ name: VClusterName, ...Changes }, closed)
export type CreateVClusterRequest = Static<typeof CreateVClusterRequest>

/** `PATCH /v1/vclusters/{name}`: `set` as for profiles, e.g. {"policy.enforcementMode": "enforce"}; `overlay` replaces all of it. */
export const ChangeVClusterRequest = Type.Object(Changes, closed)
export type ChangeVClusterRequest = Static<typeof ChangeVClusterRequest>

/** `POST /v1/vclusters/{name}/delete`; `force` unassigns the nodes in it. */
export const DeleteVClusterRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)

export const VClusterBody = Type.Object({
  name: VClusterName,
  description: Type.String(),
  peering: Type.Enum([...peerings]),
  /** It takes no more nodes. */
  closed: Type.Boolean(),
  policy: PolicyBody,
  overlay: OverlayBody,
  revision: Type.Integer({ minimum: 1 }),
  created_at: Type.String(),
  created_by: Type.String(),
})
export type VClusterBody = Static<typeof VClusterBody>

/** What `set` takes, for those who write KEY=VALUE. */
export const VClusterSettings = Type.Pick(VClusterBody, ['description', 'peering', 'closed', 'policy'])

/** Without what only `GET /v1/vclusters/{name}` tells. */
export const VClusterListAnswer = Type.Object({
  vclusters: Type.Array(
    Type.Object({
      ...Type.Omit(VClusterBody, ['overlay', 'policy']).properties,
      enforcement_mode: PolicyBody.properties.enforcementMode,
      files: Type.Integer(),
      services: Type.Array(Type.String()),
    }),
  ),
})
export const VClusterDeleted = Type.Object({
  name: VClusterName,
  revision: Type.Integer(),
  /** Nodes that were in it. */
  unassigned: Type.Array(NodeIdText),
})

/** `POST /v1/nodes/{id}/assign` */
export const AssignRequest = Type.Object({ to: VClusterName }, closed)
/** `POST /v1/nodes/{id}/move`; `force` also with work on it, which is released. */
export const MoveRequest = Type.Object({ to: VClusterName, force: Type.Optional(Type.Boolean()) }, closed)
/** `POST /v1/nodes/{id}/unassign` */
export const UnassignRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)
