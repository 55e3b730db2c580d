import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { alice, nodeRow } from '../../../test/fakes/sample-rows.ts'
import { replicaProofs, type Receipt } from './receipt.ts'
import {
  channelsCut,
  effective,
  hasProof,
  latencyOf,
  noFates,
  openReceipt,
  peersExpected,
  settled,
  stragglersOf,
  withJoinedPeers,
  withPeerProof,
  withReplicaProof,
} from './receipt-rules.ts'

const decidedAtMs = 1_000_000
const wireguard = { publicKey: 'a key', address: 'fd00::1', endpoint: null }

const opened = (peers: readonly string[] | null): Receipt =>
  openReceipt({
    id: 'r1',
    kind: 'revoke',
    node: nodeRow('active', { id: 'gone', wireguard: peers === null ? null : wireguard }).value,
    reason: 'stolen',
    certificates: ['ca/a1'],
    peers: peers ?? [],
    by: alice,
    nowMs: decidedAtMs,
  })

type Step = (receipt: Receipt) => Receipt

const replica = fc.integer({ min: 1, max: 4 })
const peer = fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5')
/** Also clocks that are behind the one that decided. */
const atMs = fc.integer({ min: decidedAtMs - 500, max: decidedAtMs + 5000 })

const steps: fc.Arbitrary<{ readonly leased: readonly number[] | null; readonly run: Step }> = fc.oneof(
  fc.record({ replica, how: fc.constantFrom(...replicaProofs), channels: fc.nat(2), atMs }).map((proof) => ({
    leased: null,
    run: (r: Receipt) => withReplicaProof(r, { ...proof, name: 'x' }),
  })),
  fc.record({ leased: fc.uniqueArray(replica), atMs }).map(({ leased, atMs: nowMs }) => ({
    leased,
    run: (r: Receipt) => effective(r, leased, nowMs),
  })),
  fc.array(fc.tuple(peer, atMs)).map((confirmed) => ({
    leased: null,
    run: (r: Receipt) => withPeerProof(r, { ...noFates, confirmed: new Map(confirmed) }),
  })),
  fc
    .record({ left: fc.array(peer), ended: fc.array(peer), deadlines: fc.array(fc.tuple(peer, atMs)) })
    .map((fates) => ({
      leased: null,
      run: (r: Receipt) => withPeerProof(r, { ...noFates, ...fates, deadlines: new Map(fates.deadlines) }),
    })),
  fc.array(peer).map((now) => ({ leased: null, run: (r: Receipt) => withJoinedPeers(r, now) })),
  atMs.map((nowMs) => ({ leased: null, run: (r: Receipt) => settled(r, nowMs) })),
)

const nodesWaitedFor = (receipt: Receipt): ReadonlySet<string> => new Set(stragglersOf(receipt).map(({ node }) => node))

test('whatever comes in whatever order: proofs only grow, effective comes before settled, neither is taken back', () => {
  fc.assert(
    fc.property(fc.option(fc.uniqueArray(peer)), fc.array(steps, { maxLength: 40 }), (peers, taken) => {
      let receipt = opened(peers)
      for (const { leased, run } of taken) {
        const before = receipt
        receipt = run(before)
        assert.deepEqual(receipt.replicas.slice(0, before.replicas.length), before.replicas)
        assert.equal(new Set(receipt.replicas.map((proof) => proof.replica)).size, receipt.replicas.length)
        assert.ok(channelsCut(receipt) >= channelsCut(before))
        if (before.effectiveAtMs !== null) {
          assert.equal(receipt.effectiveAtMs, before.effectiveAtMs)
          assert.deepEqual(receipt.replicas, before.replicas)
          for (const node of nodesWaitedFor(receipt)) assert.ok(nodesWaitedFor(before).has(node))
        } else if (receipt.effectiveAtMs !== null) {
          assert.ok(leased !== null && leased.length > 0, 'somebody must have been asked')
          for (const number of leased) assert.ok(hasProof(receipt, number))
          assert.ok(receipt.effectiveAtMs >= decidedAtMs)
        }
        if (before.peers !== null && receipt.peers !== null) {
          const [was, is] = [before.peers, receipt.peers]
          assert.ok(is.confirmed >= was.confirmed && is.left >= was.left && is.ended.length >= was.ended.length)
          assert.ok((is.lastConfirmedAtMs ?? -1) >= (was.lastConfirmedAtMs ?? -1))
          if (before.effectiveAtMs !== null) assert.equal(peersExpected(is), peersExpected(was))
          else assert.ok(peersExpected(is) >= peersExpected(was))
        }
        if (before.settledAtMs !== null) assert.equal(receipt, before)
        if (receipt.settledAtMs !== null) {
          assert.ok(receipt.effectiveAtMs !== null && receipt.settledAtMs >= receipt.effectiveAtMs)
          assert.equal(stragglersOf(receipt).length, 0)
        }
        for (const ms of Object.values(latencyOf(receipt))) assert.ok(ms === null || ms >= 0)
      }
    }),
  )
})

test('a proof that is repeated changes nothing', () => {
  fc.assert(
    fc.property(fc.option(fc.uniqueArray(peer)), fc.array(steps, { maxLength: 20 }), steps, (peers, taken, last) => {
      const receipt = taken.reduce((sofar, { run }) => run(sofar), opened(peers))
      const once = last.run(receipt)
      assert.equal(last.run(once), once)
    }),
  )
})

test('a node that never had a certificate is revoked at once, without asking replicas', () => {
  const node = nodeRow('registered', { id: 'new', epoch: 0, wireguard: null }).value
  const receipt = openReceipt({
    id: 'r1',
    kind: 'decommission',
    node,
    reason: 'decommissioned',
    certificates: [],
    peers: [],
    by: alice,
    nowMs: decidedAtMs,
  })
  assert.deepEqual([receipt.effectiveAtMs, receipt.settledAtMs, receipt.replicas], [decidedAtMs, decidedAtMs, []])
})

test('a peer that joined while the withdrawal was on its way has to drop the key too; one that joins later never gets it', () => {
  const before = withJoinedPeers(opened(['p1']), ['p1', 'p2', 'gone'])
  assert.deepEqual([...nodesWaitedFor(before)], ['p1', 'p2'])
  const proof = { replica: 1, name: 'x', how: 'itself', channels: 0, atMs: decidedAtMs } as const
  const after = effective(withReplicaProof(before, proof), [1], decidedAtMs + 5)
  assert.equal(withJoinedPeers(after, ['p3']), after)
})
