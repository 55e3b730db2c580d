// Who is away is decided by the replica that leads, on what all of them know. No death is faked by one of theirs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaderStore } from '#plane/cluster/leading.ts'
import { setUpReplicas, turns } from './replicas-setup.ts'

const minute = 60_000
const graceMs = 5 * minute
const node = 'gpu-001'

const setUp = async (t: Parameters<typeof setUpReplicas>[0], nodes: readonly string[] = [node]) => {
  const setup = await setUpReplicas(t, 3, nodes)
  const [a, b, c] = setup.replicas
  assert.ok(a && b && c)
  a.lead()
  return { ...setup, a, b, c }
}

test('a node on any replica is here; one on none lapses after the grace, once', async (t) => {
  const { b, pass, membershipOf, base } = await setUp(t, ['here', 'gone'])
  assert.equal(await b.dial('here', 'a').outcome, 'opened')
  await pass(graceMs - 5000)
  assert.equal(await membershipOf('gone'), 'active')
  await pass(10_000)
  assert.deepEqual([await membershipOf('here'), await membershipOf('gone')], ['active', 'inactive'])
  const lapses = await base.journal.read({ after: null, last: null, limit: 100, node: null, type: 'node.lapsed' })
  assert.equal(lapses.length, 1)
})

test('the death of a replica makes no node inactive before the grace, and a node that comes back elsewhere stays', async (t) => {
  const { b, c, pass, membershipOf } = await setUp(t, ['back', 'gone'])
  await Promise.all([b.dial('back', 'a').outcome, b.dial('gone', 'b').outcome])
  await pass(2 * graceMs)
  b.die()
  await pass(graceMs - 10_000, [b])
  assert.deepEqual([await membershipOf('back'), await membershipOf('gone')], ['active', 'active'])
  assert.equal(await c.dial('back', 'a').outcome, 'opened')
  await pass(20_000, [b])
  assert.deepEqual([await membershipOf('back'), await membershipOf('gone')], ['active', 'inactive'])
})

test('a node that moves from one replica to another is never away', async (t) => {
  const { a, b, c, pass, membershipOf } = await setUp(t)
  for (let round = 0; round < 4; round++) {
    for (const replica of [a, b, c]) {
      assert.equal(await replica.dial(node, 'a').outcome, 'opened')
      await pass(graceMs / 2)
      assert.equal(await membershipOf(node), 'active')
    }
  }
})

test('a node that came for a moment between two looks of the leader counts from there', async (t) => {
  const { b, pass, membershipOf } = await setUp(t)
  await pass(graceMs - 4000)
  const channel = b.dial(node, 'a')
  await channel.outcome
  channel.hangUp()
  await turns()
  await pass(10_000)
  assert.equal(await membershipOf(node), 'active')
  // One that does not answer may have seen it: nobody lapses on half of what is known.
  b.mute(true)
  await pass(2 * graceMs)
  assert.equal(await membershipOf(node), 'active')
  b.mute(false)
  await pass(graceMs + 10_000)
  assert.equal(await membershipOf(node), 'inactive')
})

test('another leader begins to count anew', async (t) => {
  const { b, pass, membershipOf } = await setUp(t)
  await pass(graceMs - 10_000)
  b.lead()
  await pass(graceMs - 10_000)
  assert.equal(await membershipOf(node), 'active')
  await pass(20_000)
  assert.equal(await membershipOf(node), 'inactive')
})

test('an outage of the store fakes no deaths: after it every node has the whole grace again', async (t) => {
  const { replicas, a, pass, membershipOf } = await setUp(t)
  assert.equal(await a.dial(node, 'a').outcome, 'opened')
  await pass(minute)
  for (const replica of replicas) replica.stand('behind')
  await pass(5000)
  for (const replica of replicas) replica.stand('expired')
  assert.equal(a.sessions.count(), 0)
  await pass(2 * graceMs)
  assert.equal(await membershipOf(node), 'active')
  for (const replica of replicas) replica.stand('serving')
  await pass(graceMs - 10_000)
  assert.equal(await membershipOf(node), 'active')
  assert.equal(await a.dial(node, 'a').outcome, 'opened')
  await pass(2 * graceMs)
  assert.equal(await membershipOf(node), 'active')
})

test('what a leader that slept still wants to write is refused', async (t) => {
  const { a, b, pass, membershipOf } = await setUp(t)
  const asLeader = a.store.replicas.leadership()
  assert.ok(asLeader)
  await pass(graceMs - 2000)
  b.lead()
  await pass(5000, [b])
  assert.equal(await membershipOf(node), 'active')
  await assert.rejects(
    a.store.commit({ reads: [], writes: [], entries: [] as never }, asLeader),
    ({ name }: Error) => name === 'StaleReplica',
  )
})

test('of a channel that opens and a lapse that is decided already the channel wins', async (t) => {
  const { a, b, pass, membershipOf } = await setUp(t)
  await pass(graceMs - 2000)
  await pass(4000, [a])
  const fencingToken = a.store.replicas.leadership()
  assert.ok(fencingToken)
  const { promise: decided, resolve: decide } = Promise.withResolvers<void>()
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const store = leaderStore(a.store, fencingToken)
  const sweeping = a.sweepAbsent({
    ...store,
    async commit(change) {
      decide()
      await allowed
      return store.commit(change)
    },
  })
  await decided
  assert.equal(await b.dial(node, 'a').outcome, 'opened')
  allow()
  await sweeping
  assert.equal(await membershipOf(node), 'active')
})

test('a channel without a hold is claimed again when its node is looked for, and its node is here', async (t) => {
  const { b, pass, membershipOf } = await setUp(t)
  const channel = b.dial(node, 'a')
  assert.equal(await channel.outcome, 'opened')
  const { holds, self } = b.store.replicas
  holds.release(node, b.sessions.of(node)[0]?.number ?? 0)
  assert.equal(await holds.of(node), null)
  await pass(graceMs + 10_000)
  assert.equal(await membershipOf(node), 'active')
  assert.equal((await holds.of(node))?.replica, self)
})
