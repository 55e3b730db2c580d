// vClusters, and which of them a node is in.

import { refuse } from '#domain/core/refusal.ts'
import type { VClusterChanges } from '#domain/fleet/vcluster.ts'
import { assignNode, moveNode, unassignNode } from './assign-node.ts'
import { changeVCluster, createVCluster, deleteVCluster } from './change-vclusters.ts'
import { overlayOf } from '#wire/fleet/overlay-document.ts'
import {
  vclusterLine,
  vclusterView,
  vclusterApi,
  type ChangeVClusterRequest,
  type VClusterLine,
} from '#wire/fleet/vcluster-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import { everyRow } from '#plane/core/pages.ts'
import { detailOf, type NodeSources } from '#plane/node/operator-node-routes.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'

export const operatorVClusterRoutes = (core: FlowCore, sources: NodeSources): readonly Route[] =>
  serve(vclusterApi, {
    list: () => listVClusters(core.store),
    create: async (call) => {
      const { name, ...changes } = call.body
      const done = await createVCluster(core, name, changesIn(changes), attributionOf(call))
      return done.kind === 'refused' ? done : answer(vclusterView(done.vcluster), 201)
    },
    show: async (call) => {
      const row = await core.store.get('vcluster', call.params.name)
      const gone = row === null || row.value.deletedAtMs !== null
      return gone ? refuse('VCLUSTER_NOT_FOUND', call.params.name) : answer(vclusterView(row.value))
    },
    change: async (call) => {
      const changes = changesIn(call.body)
      const done = await changeVCluster(core, call.params.name, changes, attributionOf(call))
      return done.kind === 'refused' ? done : answer(vclusterView(done.vcluster))
    },
    delete: async (call) => {
      const { force = false } = call.body
      const done = await deleteVCluster(core, call.params.name, { force }, attributionOf(call))
      if (done.kind === 'refused') return done
      const { name, revision } = done.vcluster
      return answer({ name, revision, unassigned: [...done.unassigned] })
    },
    assign: (call) => {
      const { to } = call.body
      return changed(core, sources, assignNode(core, call.params.id, to, attributionOf(call)))
    },
    move: (call) => {
      const { to, force = false } = call.body
      return changed(core, sources, moveNode(core, call.params.id, { to, force }, attributionOf(call)))
    },
    unassign: (call) => {
      const { force = false } = call.body
      return changed(core, sources, unassignNode(core, call.params.id, { force, deleted: null }, attributionOf(call)))
    },
  })

const changed = async (core: FlowCore, sources: NodeSources, doing: ReturnType<typeof assignNode>) => {
  const done = await doing
  return done.kind === 'refused' ? done : answer(await detailOf(core, sources, done.node))
}

const changesIn = ({ set = {}, overlay }: ChangeVClusterRequest): VClusterChanges => ({
  set,
  overlay: overlay === undefined ? null : overlayOf(overlay),
})

const listVClusters = async (store: Store) => {
  const counts = await store.countAssigned()
  const vclusters: VClusterLine[] = []
  for await (const vcluster of everyRow(store, 'vcluster', ({ name }) => name))
    if (vcluster.deletedAtMs === null) vclusters.push(vclusterLine(vcluster, counts.get(vcluster.name) ?? 0))
  return answer({ vclusters })
}
