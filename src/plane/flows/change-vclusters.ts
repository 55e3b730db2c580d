// vClusters. One with nodes in it is deleted by taking them out, one after the other, and then itself: it is closed before
// it is looked at who is in it, so that none comes in meanwhile.

import type { Row } from '#domain/change.ts'
import type { Unchanged } from '#domain/conditions.ts'
import type { Attribution } from '#domain/decision.ts'
import type { NodeId } from '#domain/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/refusal.ts'
import {
  decideChangeVCluster,
  decideCreateVCluster,
  decideDeleteVCluster,
  type VClusterChanges,
  type VClusterDecided,
} from '#domain/vcluster-rules.ts'
import type { VCluster } from '#domain/vcluster.ts'
import type { Store } from '#plane/store/store.ts'
import { unassignNode, type AssignDeps } from './assign-node.ts'
import { commitDecision, commitUnlessSo } from './commit-decision.ts'

export type Written = { readonly kind: 'written'; readonly vcluster: VCluster }

const written = (vcluster: VCluster): Written => ({ kind: 'written', vcluster })

export const createVCluster = async (
  deps: AssignDeps,
  name: string,
  changes: VClusterChanges,
  by: Attribution,
): Promise<Written | Refusal> => {
  const done = await commitDecision(deps, async () => {
    const existing = await deps.store.get('vcluster', name)
    return decideCreateVCluster({ ...changes, name, existing, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : written(done.vcluster)
}

export const changeVCluster = async (
  deps: AssignDeps,
  name: string,
  changes: VClusterChanges,
  by: Attribution,
): Promise<Written | Refusal> => {
  type Same = Unchanged & { readonly vcluster: VCluster }
  const done = await commitUnlessSo<VClusterDecided, Same>(deps, async () => {
    const vcluster = await standing(deps.store, name)
    if (isRefusal(vcluster)) return vcluster
    const verdict = decideChangeVCluster({ ...changes, vcluster, by, nowMs: deps.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, vcluster: vcluster.value } : verdict
  })
  return done.kind === 'refused' ? done : written(done.vcluster)
}

export type Deleted = { readonly kind: 'deleted'; readonly vcluster: VCluster; readonly unassigned: readonly NodeId[] }

/** Without `force` one that has nodes stays. May be repeated after a crash half-way. */
export const deleteVCluster = async (
  deps: AssignDeps,
  name: string,
  { force }: { readonly force: boolean },
  by: Attribution,
): Promise<Deleted | Refusal> => {
  const before = await standing(deps.store, name)
  if (isRefusal(before)) return before
  if (!force && (await nodesIn(deps.store, name, 1)).length > 0) return inUse(name)
  const close = await changeVCluster(deps, name, closing(true), by)
  if (close.kind === 'refused') return close

  const unassigned: NodeId[] = []
  for (let nodes = await nodesIn(deps.store, name, page); nodes.length > 0;) {
    if (!force) return openAgain(deps, before.value, by)
    for (const id of nodes) {
      const out = await unassignNode(deps, id, { force: true, deleted: name }, by)
      if (out.kind === 'committed') unassigned.push(id)
      // Somebody else was quicker: it is not in the next page either.
      else if (!['NODE_STATE_CONFLICT', 'NODE_REVOKED', 'NODE_NOT_FOUND'].includes(out.code)) return out
    }
    nodes = await nodesIn(deps.store, name, page)
  }
  const done = await commitDecision(deps, async () => {
    const vcluster = await standing(deps.store, name)
    return isRefusal(vcluster) ? vcluster : decideDeleteVCluster({ vcluster, by, nowMs: deps.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'deleted', vcluster: done.vcluster, unassigned }
}

/** A node was assigned between the look and the closing: it was first. */
const openAgain = async (deps: AssignDeps, { name, closed }: VCluster, by: Attribution): Promise<Refusal> => {
  const opened = closed ? null : await changeVCluster(deps, name, closing(false), by)
  return opened !== null && opened.kind === 'refused' ? opened : inUse(name)
}

const closing = (closed: boolean): VClusterChanges => ({ set: { closed }, overlay: null })

const inUse = (name: string): Refusal => refuse('VCLUSTER_IN_USE', name)

const page = 200

const nodesIn = async (store: Pick<Store, 'nodes'>, vcluster: string, limit: number): Promise<readonly NodeId[]> => {
  const rows = await store.nodes({ membership: null, profile: null, vcluster, after: null, limit })
  return rows.map(({ value }) => value.id)
}

/** One that is not deleted. */
const standing = async (store: Pick<Store, 'get'>, name: string): Promise<Row<VCluster> | Refusal> => {
  const row = await store.get('vcluster', name)
  return row === null || row.value.deletedAtMs !== null ? refuse('VCLUSTER_NOT_FOUND', name) : row
}
