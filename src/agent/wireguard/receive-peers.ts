// What a frame with peers makes of the set this node has. Pure but for the hash. What is removed is removed whatever else
// is wrong with the frame: a peer too few can be asked for again, one too many has been trusted meanwhile.

import { withDelta, type Peer } from '#domain/peer-set.ts'
import { peerFromWire, type PlanePeers } from '#wire/peers.ts'
import { peerSet, type PeerSet } from './peer-store.ts'

/** A set of which parts are still to come. */
export type Awaited = {
  readonly base: string | null
  readonly revision: string
  readonly peers: ReadonlyMap<string, Peer>
}

export type Received = {
  readonly have: PeerSet | null
  readonly awaited: Awaited | null
  /** Keys to take off the interface before anything else. */
  readonly removed: readonly string[]
  readonly next:
    | { readonly kind: 'more' }
    /** Put `have` into force, and say so. */
    | { readonly kind: 'apply' }
    /** It does not fit what this node has: the whole set is asked for. */
    | { readonly kind: 'ask' }
    /** Even the whole set is not what the plane says it is; asking again would go in a circle. */
    | { readonly kind: 'wrong' }
}

export const receivePeers = (have: PeerSet | null, awaited: Awaited | null, frame: PlanePeers): Received => {
  if (!frame.more && have?.revision === frame.revision) {
    // Over the other channel of a rotation, perhaps.
    return { have, awaited: null, removed: [], next: { kind: 'apply' } }
  }
  const goesOn = awaited !== null && awaited.base === frame.base && awaited.revision === frame.revision
  const start = goesOn ? awaited.peers : startOf(have, frame)
  const rest = without(have, frame.remove)
  const removed = gone(have, rest)
  if (start === null) return { have: rest, awaited: null, removed, next: { kind: 'ask' } }
  const peers = withDelta(start, { remove: frame.remove, add: frame.add.map(peerFromWire) })
  if (frame.more) {
    const { base, revision } = frame
    return { have: rest, awaited: { base, revision, peers }, removed, next: { kind: 'more' } }
  }
  const whole = peerSet(peers)
  if (whole.revision !== frame.revision) {
    return { have: rest, awaited: null, removed, next: { kind: frame.base === null ? 'wrong' : 'ask' } }
  }
  return { have: whole, awaited: null, removed: gone(have, whole), next: { kind: 'apply' } }
}

/** Null: it is made on a set that this node does not have. */
const startOf = (have: PeerSet | null, { base }: PlanePeers): ReadonlyMap<string, Peer> | null => {
  if (base === null) return new Map()
  return have?.revision === base ? have.peers : null
}

const without = (have: PeerSet | null, keys: readonly string[]): PeerSet | null =>
  have === null || !keys.some((key) => have.peers.has(key))
    ? have
    : peerSet(withDelta(have.peers, { remove: keys, add: [] }))

const gone = (before: PeerSet | null, after: PeerSet | null): string[] =>
  [...(before?.peers.keys() ?? [])].filter((key) => after?.peers.has(key) !== true)
