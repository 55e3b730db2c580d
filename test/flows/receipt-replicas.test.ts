// What a receipt says of replicas: which of them knew and when, which were silent, and who goes on with it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOf } from '#domain/core/change.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { openReceipt } from '#domain/revocation/receipt-rules.ts'
import { withdrawIdentity } from '#plane/revocation/withdraw-identity.ts'
import { leaderStore } from '#plane/cluster/leading.ts'
import { alice } from '../fakes/sample-rows.ts'
import { note } from '../store/harness.ts'
import { setUpReplicas, turns } from './replicas-setup.ts'

const node = 'gpu-001'
const stolen = { kind: 'revoke', reason: 'stolen', reasonCode: 'unspecified' } as const

type Setup = Awaited<ReturnType<typeof setUpReplicas>>
type Replica = Setup['replicas'][number]

const three = (replicas: Setup['replicas']): readonly [Replica, Replica, Replica] => {
  const [a, b, c] = replicas
  assert.ok(a && b && c)
  return [a, b, c]
}

const onlyReceipt = async ({ base }: Setup) => {
  const [row, ...others] = await base.list('receipt', { after: null, limit: 10 })
  assert.ok(row !== undefined)
  assert.deepEqual(others, [])
  return row.value
}

const proofs = async (setup: Setup): Promise<readonly string[]> =>
  (await onlyReceipt(setup)).replicas.map(({ replica, how }) => `${replica} ${how}`).toSorted()

const goOn = (setup: Setup, leader: Replica): Promise<void> => {
  const fencingToken = leader.store.replicas.leadership()
  assert.ok(fencingToken !== null)
  return setup.patiently(leader.receipts.resumeOpen(leaderStore(leader.store, fencingToken)))
}

test('all replicas acknowledge: it is effective before it is answered, and the journal says so once', async (t) => {
  const setup = await setUpReplicas(t, 3)
  const [a] = three(setup.replicas)
  const withdrawn = await setup.patiently(withdrawIdentity(a, a, node, stolen, alice))
  assert.ok(withdrawn.kind === 'withdrawn' && withdrawn.receipt.effectiveAtMs !== null)
  assert.deepEqual(await proofs(setup), ['1 itself', '2 acknowledged', '3 acknowledged'])
  const query = { after: null, last: null, limit: 10, node, type: 'receipt.effective' as const }
  assert.equal((await setup.base.journal.read(query)).length, 1)
})

test('a silent replica keeps it from being effective for as long as it may act; then its lease is the proof', async (t) => {
  const setup = await setUpReplicas(t, 3)
  const [a, b] = three(setup.replicas)
  const graces = new Set<number>()
  const { leasedOrOverSince } = a.store.replicas
  Object.assign(a.store.replicas, {
    leasedOrOverSince(graceMs: number) {
      graces.add(graceMs)
      return leasedOrOverSince(graceMs)
    },
  })
  b.mute(true)
  await setup.patiently(withdrawIdentity(a, a, node, stolen, alice))
  assert.deepEqual([...graces], [2000], 'a lease is over for some time before it counts, since clocks differ')
  await setup.pass(6000)
  for (let looks = 0; looks < 3; looks++) await goOn(setup, a)
  assert.equal((await onlyReceipt(setup)).effectiveAtMs, null)
  b.die()
  await goOn(setup, a)
  const receipt = await onlyReceipt(setup)
  assert.deepEqual(await proofs(setup), ['1 itself', '2 lease', '3 acknowledged'])
  assert.ok(receipt.effectiveAtMs !== null && receipt.settledAtMs !== null)
  assert.equal(receipt.clocks, 'of several planes')
})

test('a plane that dies between its commit and the proof: the one that leads completes the receipt', async (t) => {
  const setup = await setUpReplicas(t, 3)
  const [a, b] = three(setup.replicas)
  const dying: Replica['receipts'] = { ...b.receipts, collect: async (receipt) => receipt }
  await withdrawIdentity(b, { ...b, receipts: dying }, node, stolen, alice)
  b.mute(true)
  await goOn(setup, a)
  assert.deepEqual(await proofs(setup), [], 'the plane that decided has some seconds to itself')
  await setup.pass(6000)
  await goOn(setup, a)
  assert.equal((await onlyReceipt(setup)).effectiveAtMs, null, 'it has a lease, whatever became of it')
  b.die()
  await goOn(setup, a)
  assert.deepEqual(await proofs(setup), ['1 acknowledged', '2 lease', '3 acknowledged'])
})

test('a replica that is behind acknowledges nothing; one that starts later has loaded it', async (t) => {
  const setup = await setUpReplicas(t, 3)
  const [a, , c] = three(setup.replicas)
  c.stand('behind')
  const withdrawn = await setup.patiently(withdrawIdentity(a, a, node, stolen, alice))
  assert.ok(withdrawn.kind === 'withdrawn' && withdrawn.receipt.effectiveAtMs === null)
  assert.equal(await setup.patiently(a.channels.cutOn(3, withdrawn.receipt.id)), null)
  c.stand('serving')
  await turns()
  assert.equal(await setup.patiently(a.channels.cutOn(3, withdrawn.receipt.id)), 0)
  // It knows nothing of that one, and everything that was committed before it was asked.
  assert.equal(await setup.patiently(a.channels.cutOn(3, 'of a time before it was started')), 0)
})

test('receipts that wait for a peer for months do not keep a newer one from becoming effective', async (t) => {
  const setup = await setUpReplicas(t, 1, [node, 'away'])
  const [a] = setup.replicas
  assert.ok(a)
  const away = await setup.base.get('node', 'away')
  assert.ok(away !== null)
  const wireguard = { publicKey: 'k', address: 'fd00::1', endpoint: null }
  const waiting = Array.from({ length: 100 }, (_, at): Receipt => {
    const facts = { kind: 'revoke', reason: 'x', certificates: [], peers: ['away'], by: alice, nowMs: 1 } as const
    const gone = { ...away.value, id: `gone-${at}`, wireguard }
    return { ...openReceipt({ ...facts, id: `0${String(at).padStart(3, '0')}`, node: gone }), effectiveAtMs: 2 }
  })
  await setup.base.commit({
    reads: [readOf('node', 'away', away), ...waiting.map(({ id }) => readOf('receipt', id, null))],
    writes: [
      { put: 'node', value: { ...away.value, wireguard: { ...wireguard, publicKey: 'its own' } } },
      ...waiting.map((value) => ({ put: 'receipt', value }) as const),
    ],
    entries: [note()],
  })
  const dying: Replica['receipts'] = { ...a.receipts, collect: async (receipt) => receipt }
  await withdrawIdentity(a, { ...a, receipts: dying }, node, stolen, alice)
  await setup.pass(6000)
  for (let looks = 0; looks < 2; looks++) await goOn(setup, a)
  const newest = await setup.base.list('receipt', { where: { node }, after: null, limit: 10 })
  assert.deepEqual(
    newest.map(({ value }) => value.effectiveAtMs !== null),
    [true],
  )
})
