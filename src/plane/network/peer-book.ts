// Every WireGuard peer of the domain, by group: read from the store at start, and followed through the commits of this and
// all other replicas. Nodes that take no part are not kept.

import type { Node, NodeId } from '#domain/core/node.ts'
import { groupOf, groupOnceUsed, peerOf, type Group, type Peer } from '#domain/network/peer-set.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { Feed } from '#plane/core/feed.ts'
import { everyRow, rowPages } from '#plane/core/pages.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { PeerGroup } from './peer-group.ts'

export type PeerBook = {
  /** Null: the node has no peers. */
  groupOf(node: NodeId): PeerGroup | null
  /** Whom this node would have for peers once it is used: what an enrollment is answered with. */
  peersFor(node: Node): readonly Peer[]
  /** Its name, for people. */
  nameOf(node: NodeId): Group
  /** Called in the turn in which a commit is published, once for all of it. */
  onChange(run: (changed: PeersChanged) => void): void
}

export type PeersChanged = {
  readonly groups: ReadonlySet<PeerGroup>
  /** Nodes that have another group now, or none. */
  readonly moved: ReadonlySet<NodeId>
  /** A key has gone from a group: that is not to wait. */
  readonly urgent: boolean
}

/** Only the fields of a node that decide its group: there may be many nodes. */
type Placed = Pick<Node, 'id' | 'membership' | 'assignment' | 'wireguard'>
type Kept = { readonly node: Placed; readonly group: Exclude<Group, null> }

export const openPeerBook = async (
  store: Pick<Store, 'list' | 'get'>,
  feed: Pick<Feed, 'subscribe'>,
): Promise<PeerBook> => {
  const groups = new Map<string, PeerGroup>()
  const kept = new Map<NodeId, Kept>()
  const vclusters = new Map<string, VCluster>()
  const listeners: ((changed: PeersChanged) => void)[] = []

  const groupNamed = (name: string): PeerGroup => {
    const group = groups.get(name) ?? new PeerGroup()
    groups.set(name, group)
    return group
  }
  const vclusterOf = ({ assignment }: Placed): VCluster | null =>
    assignment === null ? null : (vclusters.get(assignment) ?? null)

  const place = ({ id, membership, assignment, wireguard }: Placed, news: News): void => {
    const node: Placed = { id, membership, assignment, wireguard }
    const before = kept.get(node.id)
    const name = groupOf(node, vclusterOf(node))
    const peer = peerOf(node)
    if (before !== undefined && before.group !== name) {
      const left = groupNamed(before.group)
      if (left.remove(node.id)) news.withdrawn(left)
      news.moved.add(node.id)
    }
    if (name === null || peer === null) return void kept.delete(node.id)
    const group = groupNamed(name)
    const at = group.at
    if (group.put(peer)) news.withdrawn(group)
    else if (group.at !== at) news.groups.add(group)
    if (before === undefined) news.moved.add(node.id)
    kept.set(node.id, { node, group: name })
  }

  const learn = (vcluster: VCluster, news: News): void => {
    const { peering = null } = vclusters.get(vcluster.name) ?? {}
    vclusters.set(vcluster.name, vcluster)
    if (peering === vcluster.peering) return
    for (const { node } of [...kept.values()]) if (node.assignment === vcluster.name) place(node, news)
  }

  const follow = ({ writes }: Committed): void => {
    const news = openNews()
    for (const write of writes) if (write.put === 'vcluster') learn(write.value, news)
    for (const write of writes) if (write.put === 'node') place(write.value, news)
    if (news.groups.size === 0 && news.moved.size === 0) return
    for (const run of listeners) run({ groups: news.groups, moved: news.moved, urgent: news.urgent() })
  }

  // What is committed while the pages are read is newer than they are.
  const published = { vclusters: new Set<string>(), nodes: new Set<NodeId>() }
  let loading = true
  feed.subscribe('peer book', (committed) => {
    if (loading) {
      for (const write of committed.writes) {
        if (write.put === 'vcluster') published.vclusters.add(write.value.name)
        if (write.put === 'node') published.nodes.add(write.value.id)
      }
    }
    follow(committed)
  })
  for await (const vcluster of everyRow(store, 'vcluster', ({ name }) => name)) {
    if (!published.vclusters.has(vcluster.name)) learn(vcluster, openNews())
  }
  for await (const node of everyMember(store)) if (!published.nodes.has(node.id)) place(node, openNews())
  loading = false

  return {
    groupOf: (node) => {
      const found = kept.get(node)
      return found === undefined ? null : groupNamed(found.group)
    },
    peersFor(node) {
      const name = groupOnceUsed(node, vclusterOf(node))
      return name === null ? [] : groupNamed(name).others(node.id)
    },
    nameOf: (node) => kept.get(node)?.group ?? null,
    onChange: (run) => void listeners.push(run),
  }
}

/** Every node with an address in the network. Reading all nodes for the few that take part would be most of a start. */
async function* everyMember(store: Pick<Store, 'list' | 'get'>): AsyncGenerator<Node, void, void> {
  for await (const page of rowPages(store, 'overlay-address', ({ address }) => address)) {
    const rows = await Promise.all(page.map(({ value }) => store.get('node', value.node)))
    for (const row of rows) if (row !== null) yield row.value
  }
}

type News = {
  readonly groups: Set<PeerGroup>
  readonly moved: Set<NodeId>
  withdrawn(group: PeerGroup): void
  urgent(): boolean
}

const openNews = (): News => {
  const groups = new Set<PeerGroup>()
  let urgent = false
  return {
    groups,
    moved: new Set(),
    withdrawn(group) {
      groups.add(group)
      urgent = true
    },
    urgent: () => urgent,
  }
}
