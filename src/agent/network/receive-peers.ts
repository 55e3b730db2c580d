// Applies a frame with peers to the set of this node. Pure but for the hash. Removals are applied even if the rest of the frame
// is wrong: a missing peer can be asked for again, an extra one would be trusted meanwhile.

import { withDelta, type Peer } from '#domain/network/peer-set.ts'
import { peerFromWire, type PlanePeers } from '#wire/network/peers.ts'
import { peerSet, type PeerSet } from './peer-store.ts'

/** What came over one channel so far. */
export type PeersSoFar = {
  /** A set of which parts are still to come: what it is made on, and how far it has come. */
  readonly awaited: { readonly base: string | null; readonly peers: ReadonlyMap<string, Peer> } | null
  /** How often the whole set was asked for since the last that fitted. */
  readonly asked: number
}

export const nothingSoFar: PeersSoFar = { awaited: null, asked: 0 }

export type Received = {
  readonly have: PeerSet | null
  readonly soFar: PeersSoFar
  /** Keys to take off the interface before anything else. */
  readonly removed: readonly string[]
  readonly next:
    | { readonly kind: 'more' }
    /** Put `have` into force, and say so. */
    | { readonly kind: 'apply' }
    /** It does not fit what this node has: the whole set is to be asked for. */
    | { readonly kind: 'ask' }
    /** Not even whole sets are what the plane says they are; asking on would go in a circle. */
    | { readonly kind: 'give-up' }
}

const mostAsked = 3

export const receivePeers = (have: PeerSet | null, { awaited, asked }: PeersSoFar, frame: PlanePeers): Received => {
  const { base, revision, more } = frame
  // Over the other channel of a rotation, perhaps.
  if (!more && have?.revision === revision) return { have, soFar: nothingSoFar, removed: [], next: { kind: 'apply' } }
  const start = awaited?.base === base ? awaited.peers : startOf(have, frame)
  const rest = without(have, frame.remove)
  const removed = gone(have, rest)
  if (start !== null && more) {
    const peers = withDelta(start, { remove: frame.remove, add: frame.add.map(peerFromWire) })
    return { have: rest, soFar: { awaited: { base, peers }, asked }, removed, next: { kind: 'more' } }
  }
  const whole =
    start === null ? null : peerSet(withDelta(start, { remove: frame.remove, add: frame.add.map(peerFromWire) }))
  if (whole?.revision === revision) {
    return { have: whole, soFar: nothingSoFar, removed: gone(have, whole), next: { kind: 'apply' } }
  }
  // A frame that the plane sent before it received the question fits no better, and is no reason to ask again.
  if (base !== null && asked > 0)
    return { have: rest, soFar: { awaited: null, asked }, removed, next: { kind: 'more' } }
  const next = { kind: asked < mostAsked ? 'ask' : 'give-up' } as const
  return { have: rest, soFar: { awaited: null, asked: asked + 1 }, removed, next }
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
