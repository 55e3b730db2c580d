// One group of WireGuard peers, as this replica knows it: who is in it, what changed of late, and who has confirmed what.
// Positions count its changes in this process; what two replicas have in common is the revision, made from the content.

import type { NodeId } from '#domain/core/node.ts'
import {
  noPeers,
  peerHash,
  revisionText,
  samePeer,
  sumWith,
  sumWithout,
  type Peer,
  type PeerSum,
} from '#domain/network/peer-set.ts'
import { sha256 } from '#platform/bytes.ts'

/** For each key what it is now; null: it is gone. */
export type PeerOps = Map<string, Peer | null>

type Member = { readonly peer: Peer; readonly hash: PeerSum }
type Change = { readonly node: NodeId; readonly key: string; readonly peer: Peer | null }
type Applied = { readonly at: number; readonly atMs: number; readonly revision: string }
/** `confirmed`: when each node first confirmed a set without it; null: not remembered, only that it did. */
type Removed = { readonly at: number; confirmed: Map<NodeId, number> | null }

/** A node that was away for longer gets the whole set. */
const changesKept = 4096
const removalsKept = 1024
/** The number of revisions whose confirmations are kept: a receipt asks within seconds, and every map has every node. */
const removalsTimed = 32

export class PeerGroup {
  /** How many changes there were. */
  at = 0
  readonly #members = new Map<NodeId, Member>()
  readonly #keys = new Set<string>()
  readonly #changes: Change[] = []
  /** Where the group was when it had this sum, newest of several. */
  readonly #positions = new Map<PeerSum, number>([[noPeers, 0]])
  readonly #sums: PeerSum[] = [noPeers]
  readonly #removed = new Map<string, Removed>()
  readonly #timed: Removed[] = []
  /** The position of the last removal that was forgotten. */
  #forgottenAt = 0
  readonly #applied = new Map<NodeId, Applied>()
  #sum = noPeers

  /** True: a key has gone. */
  put(peer: Peer): boolean {
    const before = this.#members.get(peer.node)
    if (before !== undefined && samePeer(before.peer, peer)) return false
    const withdrawn = before !== undefined && before.peer.publicKey !== peer.publicKey
    if (withdrawn) this.remove(peer.node)
    else if (before !== undefined) this.#sum = sumWithout(this.#sum, before.hash)
    const hash = peerHash(sha256, peer)
    this.#members.set(peer.node, { peer, hash })
    this.#keys.add(peer.publicKey)
    this.#sum = sumWith(this.#sum, hash)
    this.#removed.delete(peer.publicKey)
    this.#note({ node: peer.node, key: peer.publicKey, peer })
    return withdrawn
  }

  remove(node: NodeId): boolean {
    const member = this.#members.get(node)
    if (member === undefined) return false
    this.#members.delete(node)
    this.#applied.delete(node)
    this.#sum = sumWithout(this.#sum, member.hash)
    const { publicKey: key } = member.peer
    this.#keys.delete(key)
    this.#note({ node, key, peer: null })
    const removed: Removed = { at: this.at, confirmed: new Map() }
    this.#removed.set(key, removed)
    if (this.#timed.push(removed) > removalsTimed) {
      const oldest = this.#timed.shift()
      if (oldest !== undefined) oldest.confirmed = null
    }
    for (const [oldest, { at }] of this.#removed) {
      if (this.#removed.size <= removalsKept) break
      this.#removed.delete(oldest)
      this.#forgottenAt = at
    }
    return true
  }

  has(node: NodeId): boolean {
    return this.#members.has(node)
  }

  /** Of a node: all but itself. */
  others(node: NodeId): readonly Peer[] {
    return [...this.#members.values()].flatMap(({ peer }) => (peer.node === node ? [] : [peer]))
  }

  revisionFor(node: NodeId): string {
    const own = this.#members.get(node)
    return revisionText(own === undefined ? this.#sum : sumWithout(this.#sum, own.hash))
  }

  /** When this node's set last had this revision; null: not of late. */
  positionOf(node: NodeId, revision: string): number | null {
    const sum = BigInt(`0x${revision}`)
    const own = this.#members.get(node)
    return this.#positions.get(own === undefined ? sum : sumWith(sum, own.hash)) ?? null
  }

  /** What this node has missed; null: more than is remembered. */
  since(at: number, node: NodeId): PeerOps | null {
    const from = this.#changes.length - (this.at - at)
    if (from < 0) return null
    const ops: PeerOps = new Map()
    for (const change of this.#changes.slice(from)) if (change.node !== node) ops.set(change.key, change.peer)
    return ops
  }

  /** The node has in force what the group was at that position. */
  confirmed(node: NodeId, { at, atMs, revision }: Applied): void {
    const before = this.#applied.get(node)
    if (!this.#members.has(node) || (before !== undefined && before.at > at)) return
    this.#applied.set(node, { at, atMs, revision })
    for (const removed of this.#timed) {
      if (removed.at <= at && removed.confirmed?.has(node) === false) removed.confirmed.set(node, atMs)
    }
  }

  appliedBy(node: NodeId): string | null {
    return this.#applied.get(node)?.revision ?? null
  }

  /** When the node confirmed a set without this key, as far as this replica knows. */
  confirmedWithout(key: string, node: NodeId): number | null {
    if (this.#keys.has(key)) return null
    const removed = this.#removed.get(key)
    const firstMs = removed?.confirmed?.get(node)
    if (firstMs !== undefined) return firstMs
    // A key whose removal was forgotten is in no set that was confirmed since.
    const applied = this.#applied.get(node)
    return applied === undefined || applied.at < (removed?.at ?? this.#forgottenAt) ? null : applied.atMs
  }

  #note(change: Change): void {
    this.at++
    this.#changes.push(change)
    this.#sums.push(this.#sum)
    this.#positions.set(this.#sum, this.at)
    // Now and then a quarter of it, since every one would move all that are left.
    if (this.#changes.length < changesKept + changesKept / 4) return
    this.#changes.splice(0, this.#changes.length - changesKept)
    for (const sum of this.#sums.splice(0, this.#sums.length - changesKept - 1)) {
      const position = this.#positions.get(sum)
      if (position !== undefined && position < this.at - changesKept) this.#positions.delete(sum)
    }
  }
}
