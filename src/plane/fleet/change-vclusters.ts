// vClusters. One with nodes in it is deleted by taking them out, one after the other, and then itself: it is closed before
// it is looked at who is in it, so that none comes in meanwhile.

import type { Row, Attribution } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  decideChangeVCluster,
  decideCreateVCluster,
  decideDeleteVCluster,
  type VClusterChanges,
  type VCluster,
} from '#domain/fleet/vcluster.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { unassignNode } from './assign-node.ts'
import { commitDecision, type OnlyIf } from '#plane/core/commit-decision.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type Written = { readonly kind: 'written'; readonly vcluster: VCluster }

const written = (vcluster: VCluster): Written => ({ kind: 'written', vcluster })

export const createVCluster = async (
  core: FlowCore,
  name: string,
  changes: VClusterChanges,
  by: Attribution,
): Promise<Written | Refusal> => {
  const done = await commitDecision(core, async () => {
    const existing = await core.store.get('vcluster', name)
    const issuers = await readIssuers(core.store)
    return decideCreateVCluster({ ...changes, name, existing, issuers, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : written(done.vcluster)
}

export const changeVCluster = async (
  core: FlowCore,
  name: string,
  changes: VClusterChanges,
  by: Attribution,
): Promise<Written | Refusal> => {
  const done = await commitDecision(core, async () => {
    const vcluster = await liveVCluster(core.store, name)
    if (isRefusal(vcluster)) return vcluster
    const issuers = await readIssuers(core.store)
    const verdict = decideChangeVCluster({ ...changes, vcluster, issuers, by, nowMs: core.clock.nowMs() })
    return verdict.kind === 'unchanged' ? { ...verdict, vcluster: vcluster.value } : verdict
  })
  return done.kind === 'refused' ? done : written(done.vcluster)
}

export type Deleted = { readonly kind: 'deleted'; readonly vcluster: VCluster; readonly unassigned: readonly NodeId[] }

/** `onlyIf`: with `force`, only as long as all of its nodes are so. */
export type Deletion = { readonly force: boolean; readonly onlyIf?: OnlyIf }

/** Without `force` one that has nodes stays. May be repeated after a crash half-way. */
export const deleteVCluster = async (
  core: FlowCore,
  name: string,
  { force, onlyIf = () => null }: Deletion,
  by: Attribution,
): Promise<Deleted | Refusal> => {
  const before = await liveVCluster(core.store, name)
  if (isRefusal(before)) return before
  if (!force && (await hasNodes(core.store, name))) return inUse(name)
  const close = await changeVCluster(core, name, closing(true), by)
  if (close.kind === 'refused') return close

  // From here on none comes in. Before the first is taken out all of them are looked at.
  for await (const node of nodesIn(core.store, name)) {
    const no = force ? onlyIf(node) : inUse(name)
    if (no !== null) return openAgain(core, before.value, by, no)
  }
  const unassigned: NodeId[] = []
  const stillSo: OnlyIf = (node) => (node.assignment === name ? onlyIf(node) : null)
  for await (const { id } of nodesIn(core.store, name)) {
    const out = await unassignNode(core, id, { force: true, deleted: name }, by, stillSo)
    if (out.kind === 'committed') unassigned.push(id)
    // Another caller was quicker.
    else if (!['NODE_STATE_CONFLICT', 'NODE_REVOKED', 'NODE_NOT_FOUND'].includes(out.code)) return out
  }
  const done = await commitDecision(core, async () => {
    const vcluster = await liveVCluster(core.store, name)
    if (isRefusal(vcluster)) return vcluster
    // Looked at behind the row: it may have been opened, and closed again, since.
    if (await hasNodes(core.store, name)) return inUse(name)
    return decideDeleteVCluster({ vcluster, guarded: false, by, nowMs: core.clock.nowMs() })
  })
  return done.kind === 'refused' ? done : { kind: 'deleted', vcluster: done.vcluster, unassigned }
}

/** A node was assigned, or has changed, between the look and the closing: it was first. */
const openAgain = async (
  core: FlowCore,
  { name, closed }: VCluster,
  by: Attribution,
  no: Refusal,
): Promise<Refusal> => {
  const opened = closed ? null : await changeVCluster(core, name, closing(false), by)
  return opened !== null && opened.kind === 'refused' ? opened : no
}

const closing = (closed: boolean): VClusterChanges => ({ set: { closed }, overlay: null })

export const inUse = (name: string): Refusal => refuse('VCLUSTER_IN_USE', name)

const page = 200

async function* nodesIn(store: Pick<Store, 'nodes'>, vcluster: string): AsyncGenerator<Node> {
  // A plane from before there were vClusters does not maintain the column they are listed by.
  for await (const node of everyNode(store, { vcluster, limit: page })) if (node.assignment === vcluster) yield node
}

export const hasNodes = async (store: Pick<Store, 'nodes'>, vcluster: string): Promise<boolean> =>
  (await nodesIn(store, vcluster).next()).done !== true

/** One that is not deleted. */
const liveVCluster = async (store: Pick<Store, 'get'>, name: string): Promise<Row<VCluster> | Refusal> => {
  const row = await store.get('vcluster', name)
  return row === null || row.value.deletedAtMs !== null ? refuse('VCLUSTER_NOT_FOUND', name) : row
}
