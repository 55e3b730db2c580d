// Which nodes are WireGuard peers, and how two sides know whether they have the same set. A set's revision is the sum of the
// hashes of its peers: it follows every change without the rest being read again, and the same peers give the same revision in
// any order.

import type { Node, NodeId } from '#domain/core/node.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { UnderlayEndpoint } from '#domain/core/wireguard.ts'

export type Peer = {
  readonly node: NodeId
  /** 32 bytes, base64. */
  readonly publicKey: string
  /** HOST:PORT with IPv6 in brackets; null: it calls first. */
  readonly endpoint: string | null
  readonly allowedIps: readonly string[]
}

/** SHA-256, of UTF-8: this folder computes nothing that is not portable. */
export type Digest = (text: string) => Uint8Array

/** Every node of a group is a peer of every other; null: the node has no peers. */
export type Group = string | null

const everybody = 'mesh'

type Placed = Pick<Node, 'membership' | 'assignment' | 'wireguard'>

export const groupOf = (node: Placed, vcluster: Pick<VCluster, 'peering'> | null): Group =>
  takesPart(node) ? groupOnceUsed(node, vcluster) : null

/** A node with an identity that it has used. An inactive one may be back any moment, and peers may still reach it. */
const takesPart = ({ membership }: Placed): boolean =>
  membership.kind === 'active' || (membership.kind === 'inactive' && membership.slots !== null)

/**
 * Where a node comes to be that has a certificate and has not used it. A vCluster that is not known (yet) is taken for an
 * isolated one: what is kept apart by mistake can be put together later, the other way round not.
 */
export const groupOnceUsed = (
  { assignment, wireguard }: Pick<Placed, 'assignment' | 'wireguard'>,
  vcluster: Pick<VCluster, 'peering'> | null,
): Group => {
  if (wireguard === null) return null
  return assignment === null || vcluster?.peering === 'mesh' ? everybody : `isolated/${assignment}`
}

/** Null: the node takes no part in the network. */
export const peerOf = ({ id, wireguard }: Pick<Node, 'id' | 'wireguard'>): Peer | null =>
  wireguard === null
    ? null
    : {
        node: id,
        publicKey: wireguard.publicKey,
        endpoint: wireguard.endpoint === null ? null : reachedAt(wireguard.endpoint),
        allowedIps: [`${wireguard.address}/128`],
      }

const reachedAt = ({ ipv6, ipv4, port }: UnderlayEndpoint): string | null => {
  if (ipv6 !== null) return `[${ipv6}]:${port}`
  return ipv4 === null ? null : `${ipv4}:${port}`
}

/** The revision of a set. Sums are kept as numbers and sent as text. */
export type PeerSum = bigint

export const noPeers: PeerSum = 0n
const modulus = 1n << 256n

export const peerHash = (digest: Digest, { node, publicKey, endpoint, allowedIps }: Peer): PeerSum => {
  let hash = 0n
  for (const byte of digest(JSON.stringify([node, publicKey, endpoint, allowedIps]))) hash = (hash << 8n) | BigInt(byte)
  return hash
}

export const sumWith = (sum: PeerSum, hash: PeerSum): PeerSum => (sum + hash) % modulus
export const sumWithout = (sum: PeerSum, hash: PeerSum): PeerSum => (sum - hash + modulus) % modulus

export const revisionText = (sum: PeerSum): string => sum.toString(16).padStart(64, '0')

export const revisionOf = (digest: Digest, peers: Iterable<Peer>): string => {
  let sum = noPeers
  for (const peer of peers) sum = sumWith(sum, peerHash(digest, peer))
  return revisionText(sum)
}

/** What makes one set of the other: removed keys first. A key that is added and there already has changed. */
export type PeerDelta = { readonly remove: readonly string[]; readonly add: readonly Peer[] }

export const withDelta = (peers: ReadonlyMap<string, Peer>, { remove, add }: PeerDelta): Map<string, Peer> => {
  const after = new Map(peers)
  for (const key of remove) after.delete(key)
  for (const peer of add) after.set(peer.publicKey, peer)
  return after
}

export const samePeer = (a: Peer, b: Peer): boolean =>
  a.node === b.node &&
  a.publicKey === b.publicKey &&
  a.endpoint === b.endpoint &&
  a.allowedIps.length === b.allowedIps.length &&
  a.allowedIps.every((ip, at) => ip === b.allowedIps[at])
