// What an agent makes of the peers it is sent, without a network: the set as it stands, checked against every revision.

import assert from 'node:assert/strict'
import { revisionOf, type Peer } from '#domain/network/peer-set.ts'
import { sha256 } from '#platform/bytes.ts'
import { peerFromWire, type PlanePeers } from '#wire/network/peers.ts'

export type PeerAgent = {
  /** The revision once the set is whole; null: more parts are to come. */
  take(frame: PlanePeers): string | null
  readonly peers: ReadonlyMap<string, Peer>
  /** The names of the nodes, sorted. */
  nodes(): readonly string[]
  revision(): string | null
  /** Of every frame taken. */
  readonly frames: readonly PlanePeers[]
}

export const peerAgent = (start: ReadonlyMap<string, Peer> = new Map()): PeerAgent => {
  const peers = new Map(start)
  const frames: PlanePeers[] = []
  let revision: string | null = start.size === 0 ? null : revisionOf(sha256, start.values())
  let inParts = false
  return {
    take(frame) {
      if (!inParts && frame.base === null) peers.clear()
      if (!inParts && frame.base !== null) assert.equal(frame.base, revision, 'made on what the agent has')
      frames.push(frame)
      for (const key of frame.remove) peers.delete(key)
      for (const peer of frame.add) peers.set(peer.public_key, peerFromWire(peer))
      inParts = frame.more
      if (inParts) return null
      revision = revisionOf(sha256, peers.values())
      assert.equal(revision, frame.revision, 'both sides come to the same revision')
      return revision
    },
    peers,
    nodes: () => [...peers.values()].map(({ node }) => node).toSorted(),
    revision: () => revision,
    frames,
  }
}
