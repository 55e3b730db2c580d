import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Peer } from '#domain/network/peer-set.ts'
import { newWireguardKey } from '#pki/wireguard-key.ts'
import { peerOnWire, type PlanePeers } from '#wire/network/peers.ts'
import { peerSet, type PeerSet } from './peer-store.ts'
import { nothingSoFar, receivePeers, type Received } from './receive-peers.ts'

const all: readonly Peer[] = Array.from({ length: 6 }, (_, at) => ({
  node: `n${at}`,
  publicKey: newWireguardKey().publicKey,
  endpoint: at % 2 === 0 ? `192.0.2.${at + 1}:51820` : null,
  allowedIps: [`fd00::${at + 1}/128`],
}))
const [a, b, c] = all as [Peer, Peer, Peer]

const setOf = (...peers: readonly Peer[]): PeerSet => peerSet(new Map(peers.map((peer) => [peer.publicKey, peer])))
const frame = (from: PeerSet | null, to: PeerSet, change: Partial<PlanePeers>): PlanePeers => ({
  base: from?.revision ?? null,
  revision: to.revision,
  remove: [],
  add: [],
  more: false,
  ...change,
})
const names = ({ have }: Received): string[] => [...(have?.peers.values() ?? [])].map(({ node }) => node).sort()

test('what is added to the set this node has makes the set the plane says', () => {
  const got = receivePeers(setOf(a), nothingSoFar, frame(setOf(a), setOf(a, b), { add: [peerOnWire(b)] }))
  assert.deepEqual([got.next.kind, got.removed, names(got)], ['apply', [], ['n0', 'n1']])
})

test('a change of another set is not taken, but what it removes is gone at once, and the whole set is asked for once', () => {
  const odd = frame(setOf(a, b, c), setOf(a, b), { remove: [a.publicKey], add: [peerOnWire(b)] })
  const got = receivePeers(setOf(a), nothingSoFar, odd)
  assert.deepEqual([got.next.kind, got.removed, names(got)], ['ask', [a.publicKey], []])
  const before = receivePeers(got.have, got.soFar, odd)
  assert.equal(before.next.kind, 'more', 'sent before the plane received the question')
  const whole = receivePeers(before.have, before.soFar, frame(null, setOf(b), { add: [peerOnWire(b)] }))
  assert.deepEqual([whole.next.kind, names(whole)], ['apply', ['n1']])
})

test('of a set in parts the removals come at once and the rest after the last part', () => {
  const from = setOf(a, b)
  const first = receivePeers(
    from,
    nothingSoFar,
    frame(from, setOf(b, c), { remove: [a.publicKey], add: [peerOnWire(c)], more: true }),
  )
  assert.deepEqual([first.next.kind, first.removed, names(first)], ['more', [a.publicKey], ['n1']])
  // What came in the first part has gone meanwhile.
  const last = receivePeers(first.have, first.soFar, frame(from, setOf(b), { remove: [c.publicKey] }))
  assert.deepEqual([last.next.kind, names(last)], ['apply', ['n1']])
})

test('a peer that is not in the whole set is removed first', () => {
  const got = receivePeers(setOf(a, b), nothingSoFar, frame(null, setOf(b, c), { add: [b, c].map(peerOnWire) }))
  assert.deepEqual([got.next.kind, got.removed, names(got)], ['apply', [a.publicKey], ['n1', 'n2']])
})

test('a plane whose whole sets never are what it says is not asked for ever', () => {
  const wrong = frame(null, setOf(a, b), { add: [peerOnWire(a)] })
  let got = receivePeers(null, nothingSoFar, wrong)
  for (let asked = 0; got.next.kind === 'ask' && asked < 10; asked++) got = receivePeers(got.have, got.soFar, wrong)
  assert.equal(got.next.kind, 'give-up')
})

test('after any changes, in whatever parts they come, this node has the set of the plane', () => {
  const someSet = fc.subarray([...all], { minLength: 0 })
  fc.assert(
    fc.property(fc.array(someSet, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 4 }), (sets, size) => {
      let have: PeerSet | null = null
      for (const next of sets.map((peers) => setOf(...peers))) {
        const from: PeerSet | null = have
        const remove = [...(from?.peers.keys() ?? [])].filter((key) => !next.peers.has(key))
        const add = [...next.peers.values()].filter(({ publicKey }) => from?.peers.has(publicKey) !== true)
        let soFar = nothingSoFar
        let next_: Received['next']['kind'] = 'apply'
        for (let at = 0; at === 0 || at < add.length; at += size) {
          const part = { remove: at === 0 ? remove : [], add: add.slice(at, at + size).map(peerOnWire) }
          const got = receivePeers(have, soFar, frame(from, next, { ...part, more: at + size < add.length }))
          have = got.have
          soFar = got.soFar
          next_ = got.next.kind
        }
        assert.deepEqual([next_, have?.revision], ['apply', next.revision])
      }
    }),
  )
})
