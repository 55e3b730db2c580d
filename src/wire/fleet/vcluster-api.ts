// vClusters and who is in them, between operators and the plane. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import type { Service } from '#domain/fleet/overlay.ts'
import { enforcementModes, policyWithoutEffect, type Policy } from '#domain/fleet/policy.ts'
import { peerings, type VCluster } from '#domain/fleet/vcluster.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NameParams, NameText, NodeIdText, NodeParams, NoEffectYet, Settings } from '#wire/core/shapes.ts'
import { NodeDetail } from '#wire/node/node-api.ts'
import { OutputsOrNone, outputsView } from '#wire/programs/output-document.ts'
import type { ServiceBody } from './overlay.ts'
import { OverlayBody, OverlayRequest, overlayView } from './overlay-document.ts'

/** As vClusters and the maintenance mode of the domain have one. */
export const PolicyBody = Type.Object({
  enforcementMode: Type.Enum([...enforcementModes]),
  execWhitelist: Type.Array(Type.String()),
  shellWhitelist: Type.Array(Type.String()),
  regulated: Type.Boolean(),
})

const Changes = { set: Type.Optional(Settings), overlay: Type.Optional(OverlayRequest) }

/** `POST /v1/vclusters` */
export const CreateVClusterRequest = Type.Object({ name: NameText, ...Changes }, closed)
export type CreateVClusterRequest = Static<typeof CreateVClusterRequest>

/** `PATCH /v1/vclusters/{name}`: `set` as for profiles, e.g. {"policy.enforcementMode": "enforce"}; `overlay` replaces all of it. */
export const ChangeVClusterRequest = Type.Object(Changes, closed)
export type ChangeVClusterRequest = Static<typeof ChangeVClusterRequest>

/** `POST /v1/vclusters/{name}/delete`; `force` unassigns the nodes in it. */
export const DeleteVClusterRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)

const settable = {
  description: Type.String(),
  peering: Type.Enum([...peerings]),
  /** It accepts no further nodes. */
  closed: Type.Boolean(),
}

const revised = {
  revision: Type.Integer({ minimum: 1 }),
  created_at: Type.String(),
  created_by: Type.String(),
}

/** What may be queued for its nodes. Left out by planes before 0.6. */
const tasks = Type.Optional(Type.Object({ types: Type.Array(Type.String()) }))

export const VClusterBody = Type.Object({
  name: NameText,
  ...settable,
  policy: PolicyBody,
  /** Settings among these that nothing reads yet. Left out by planes of 0.3. */
  no_effect_yet: NoEffectYet,
  outputs: OutputsOrNone,
  tasks,
  overlay: OverlayBody,
  ...revised,
})
export type VClusterBody = Static<typeof VClusterBody>

/** What `set` takes, for those who write KEY=VALUE. */
export const VClusterSettings = Type.Object({ ...settable, policy: PolicyBody, outputs: OutputsOrNone, tasks })

/** Without the fields that only `GET /v1/vclusters/{name}` has. */
export const VClusterListAnswer = Type.Object({
  vclusters: Type.Array(
    Type.Object({
      name: NameText,
      ...settable,
      ...revised,
      enforcement_mode: PolicyBody.properties.enforcementMode,
      files: Type.Integer(),
      services: Type.Array(Type.String()),
      /** How many are in it. Left out by planes before 0.5. */
      nodes: Type.Optional(Type.Integer()),
    }),
  ),
})
export const VClusterDeleted = Type.Object({
  name: NameText,
  revision: Type.Integer(),
  /** Nodes that were in it. */
  unassigned: Type.Array(NodeIdText),
})

/** `POST /v1/nodes/{id}/assign` */
export const AssignRequest = Type.Object({ to: NameText }, closed)
/** `POST /v1/nodes/{id}/move`; `force` also with work on it, which is released. */
export const MoveRequest = Type.Object({ to: NameText, force: Type.Optional(Type.Boolean()) }, closed)
/** `POST /v1/nodes/{id}/unassign` */
export const UnassignRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)

export const vclusterView = (vcluster: VCluster): VClusterBody => ({
  ...headOf(vcluster),
  policy: policyView(vcluster.policy),
  no_effect_yet: policyWithoutEffect('policy'),
  outputs: outputsView(vcluster.outputs),
  tasks: { types: [...vcluster.tasks.types] },
  overlay: overlayView(vcluster.overlay),
})

export type VClusterLine = Static<typeof VClusterListAnswer>['vclusters'][number]

export const vclusterLine = (vcluster: VCluster, nodes: number): VClusterLine => ({
  ...headOf(vcluster),
  enforcement_mode: vcluster.policy.enforcementMode,
  files: vcluster.overlay.files.length,
  services: vcluster.overlay.services.map(({ name }) => name),
  nodes,
})

const headOf = ({ name, description, peering, closed, revision, createdAtMs, createdBy }: VCluster) => ({
  ...{ name, description, peering, closed, revision },
  created_at: isoTime(createdAtMs),
  created_by: createdBy,
})

export const policyView = (policy: Policy): Static<typeof PolicyBody> => ({
  ...policy,
  execWhitelist: [...policy.execWhitelist],
  shellWhitelist: [...policy.shellWhitelist],
})

export const serviceView = ({ name, command }: Service): Static<typeof ServiceBody> => ({ name, command: [...command] })

const ofNode = <const A extends string>(action: A, summary: string) =>
  ({
    method: 'POST',
    path: `/v1/nodes/:id/${action}`,
    access: 'operator',
    summary,
    params: NodeParams,
    answer: NodeDetail,
  }) as const

export const vclusterApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/vclusters',
    access: 'viewer',
    summary: 'All vClusters',
    answer: VClusterListAnswer,
  }),
  create: endpoint({
    method: 'POST',
    path: '/v1/vclusters',
    access: 'platform-admin',
    summary: 'Makes a vCluster, by default under the policy of maintenance mode',
    body: CreateVClusterRequest,
    answer: VClusterBody,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/vclusters/:name',
    access: 'viewer',
    summary: 'One vCluster, with its policy and its overlay',
    params: NameParams,
    answer: VClusterBody,
  }),
  change: endpoint({
    method: 'PATCH',
    path: '/v1/vclusters/:name',
    access: 'platform-admin',
    summary: 'Changes a vCluster; its nodes get the change at once',
    params: NameParams,
    body: ChangeVClusterRequest,
    answer: VClusterBody,
  }),
  delete: endpoint({
    method: 'POST',
    path: '/v1/vclusters/:name/delete',
    access: 'platform-admin',
    summary: 'Deletes a vCluster; with force its nodes go to maintenance mode',
    params: NameParams,
    body: DeleteVClusterRequest,
    answer: VClusterDeleted,
  }),
  assign: endpoint({
    ...ofNode('assign', 'Assigns a node that is in no vCluster'),
    body: AssignRequest,
  }),
  move: endpoint({
    ...ofNode('move', 'Moves a node from one vCluster to another in one step; its certificate stays'),
    body: MoveRequest,
  }),
  unassign: endpoint({
    ...ofNode('unassign', 'Takes a node out of its vCluster, into maintenance mode'),
    body: UnassignRequest,
  }),
}
