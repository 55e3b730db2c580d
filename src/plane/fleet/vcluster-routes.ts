// vClusters, and which of them a node is in.

import type { Static } from 'typebox'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { VClusterChanges } from '#domain/fleet/vcluster.ts'
import { assignNode, moveNode, unassignNode } from './assign-node.ts'
import { changeVCluster, createVCluster, deleteVCluster } from './change-vclusters.ts'
import { everyRow } from '#plane/core/pages.ts'
import { vclusterLine, vclusterView } from './vcluster-view.ts'
import { NodeDetail } from '#wire/api/operator-api.ts'
import {
  AssignRequest,
  ChangeVClusterRequest,
  CreateVClusterRequest,
  DeleteVClusterRequest,
  MoveRequest,
  UnassignRequest,
  VClusterBody,
  VClusterDeleted,
  VClusterListAnswer,
} from '#wire/fleet/vcluster-api.ts'
import { attributionOf, NameParams, NodeParams, param } from '#plane/http/operator-call.ts'
import { detailOf, type NodeRoutesDeps } from '#plane/node/operator-node-routes.ts'
import { answer, type Answer, type Route } from '#plane/http/route.ts'

export const operatorVClusterRoutes = (deps: NodeRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/vclusters',
    access: 'viewer',
    summary: 'All vClusters',
    answer: VClusterListAnswer,
    handle: () => listVClusters(deps),
  },
  {
    method: 'POST',
    path: '/v1/vclusters',
    access: 'platform-admin',
    summary: 'Makes a vCluster, under the policy of maintenance mode unless told otherwise',
    body: CreateVClusterRequest,
    answer: VClusterBody,
    handle: async (call) => {
      const { name, ...changes } = call.body as CreateVClusterRequest
      const done = await createVCluster(deps, name, changesIn(changes), attributionOf(call))
      return done.kind === 'refused' ? done : answer(vclusterView(done.vcluster), 201)
    },
  },
  {
    method: 'GET',
    path: '/v1/vclusters/:name',
    access: 'viewer',
    summary: 'One vCluster, with its policy and its overlay',
    params: NameParams,
    answer: VClusterBody,
    handle: async (call) => {
      const row = await deps.store.get('vcluster', param(call, 'name'))
      const gone = row === null || row.value.deletedAtMs !== null
      return gone ? refuse('VCLUSTER_NOT_FOUND', param(call, 'name')) : answer(vclusterView(row.value))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/vclusters/:name',
    access: 'platform-admin',
    summary: 'Changes a vCluster; its nodes are told at once',
    params: NameParams,
    body: ChangeVClusterRequest,
    answer: VClusterBody,
    handle: async (call) => {
      const changes = changesIn(call.body as ChangeVClusterRequest)
      const done = await changeVCluster(deps, param(call, 'name'), changes, attributionOf(call))
      return done.kind === 'refused' ? done : answer(vclusterView(done.vcluster))
    },
  },
  {
    method: 'POST',
    path: '/v1/vclusters/:name/delete',
    access: 'platform-admin',
    summary: 'Deletes a vCluster; with force its nodes go to maintenance mode',
    params: NameParams,
    body: DeleteVClusterRequest,
    answer: VClusterDeleted,
    handle: async (call) => {
      const { force = false } = call.body as Static<typeof DeleteVClusterRequest>
      const done = await deleteVCluster(deps, param(call, 'name'), { force }, attributionOf(call))
      if (done.kind === 'refused') return done
      const { name, revision } = done.vcluster
      return answer({ name, revision, unassigned: [...done.unassigned] })
    },
  },
  {
    ...ofNode('assign', 'Assigns a node that is in no vCluster'),
    body: AssignRequest,
    handle: (call) => {
      const { to } = call.body as Static<typeof AssignRequest>
      return changed(deps, assignNode(deps, param(call, 'id'), to, attributionOf(call)))
    },
  },
  {
    ...ofNode('move', 'Moves a node from one vCluster to another in one step; its certificate stays'),
    body: MoveRequest,
    handle: (call) => {
      const { to, force = false } = call.body as Static<typeof MoveRequest>
      return changed(deps, moveNode(deps, param(call, 'id'), { to, force }, attributionOf(call)))
    },
  },
  {
    ...ofNode('unassign', 'Takes a node out of its vCluster, into maintenance mode'),
    body: UnassignRequest,
    handle: (call) => {
      const { force = false } = call.body as Static<typeof UnassignRequest>
      return changed(deps, unassignNode(deps, param(call, 'id'), { force, deleted: null }, attributionOf(call)))
    },
  },
]

const ofNode = (action: string, summary: string) =>
  ({
    method: 'POST',
    path: `/v1/nodes/:id/${action}`,
    access: 'operator',
    summary,
    params: NodeParams,
    answer: NodeDetail,
  }) as const

const changed = async (deps: NodeRoutesDeps, doing: ReturnType<typeof assignNode>): Promise<Answer | Refusal> => {
  const done = await doing
  return done.kind === 'refused' ? done : answer(await detailOf(deps, done.node))
}

/** Members in one order, whatever that of the document was: what is the same is to look the same. */
const changesIn = ({ set = {}, overlay }: ChangeVClusterRequest): VClusterChanges => ({
  set,
  overlay:
    overlay === undefined
      ? null
      : {
          files: overlay.files.map(({ path, mode, content }) => ({ path, mode, content })),
          services: overlay.services.map(({ name, command }) => ({ name, command })),
        },
})

const listVClusters = async ({ store }: NodeRoutesDeps): Promise<Answer> => {
  const vclusters: ReturnType<typeof vclusterLine>[] = []
  for await (const vcluster of everyRow(store, 'vcluster', ({ name }) => name))
    if (vcluster.deletedAtMs === null) vclusters.push(vclusterLine(vcluster))
  return answer({ vclusters })
}
