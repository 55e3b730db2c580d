// The peers of this node, kept so that its network comes up again before the plane is reached, and while it is away. No
// secrets. The revision is computed, never believed: a file that was damaged or changed by hand counts as none.

import * as path from 'node:path'
import { Type } from 'typebox'
import { revisionOf, type Peer } from '#domain/network/peer-set.ts'
import { sha256 } from '#platform/bytes.ts'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { Peer as PeerBody, peerFromWire, peerOnWire, PeerRevision } from '#wire/network/peers.ts'
import { attempt, type Kept } from '#agent/state/identity-keeper.ts'
import { faultOfPeer } from './peer-fault.ts'

export type PeerSet = { readonly revision: string; readonly peers: ReadonlyMap<string, Peer> }

export const peerSet = (peers: ReadonlyMap<string, Peer>): PeerSet => ({
  peers,
  revision: revisionOf(sha256, peers.values()),
})

export type PeerStore = {
  /** Null: there is none, or it could not be read. */
  current(): PeerSet | null
  /**
   * In force at once, whether or not it could be written. If it could not, the previous file is removed too if possible, since
   * it may name a peer that was removed. Null: there is no set afterwards.
   */
  keep(set: PeerSet | null): Kept
}

export const openPeerStore = (stateFolder: string): PeerStore => {
  const file = path.join(stateFolder, 'peers.json')
  let set = readPeers(file)
  return {
    current: () => set,
    keep: (next) => {
      set = next
      const kept = attempt(() => {
        if (next === null) return erase(file)
        makeFolder(stateFolder, 0o700)
        replaceFile(file, textOf(next), 0o600)
      })
      if (!kept.persisted) attempt(() => erase(file))
      return kept
    },
  }
}

const version = 1
const Stored = Type.Object({ version: Type.Literal(version), revision: PeerRevision, peers: Type.Array(PeerBody) })

const textOf = ({ revision, peers }: PeerSet): string =>
  JSON.stringify({ version, revision, peers: [...peers.values()].map(peerOnWire) }, null, 1) + '\n'

const erase = (file: string): void => {
  if (readFileIfAny(file) !== null) removeFile(file)
}

const readPeers = (file: string): PeerSet | null => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(file) ?? 'null')
    if (!matchesSchema(Stored, value) || value.peers.some((peer) => faultOfPeer(peer) !== null)) return null
    const set = peerSet(new Map(value.peers.map((peer) => [peer.public_key, peerFromWire(peer)])))
    return set.revision === value.revision ? set : null
  } catch {
    return null
  }
}
