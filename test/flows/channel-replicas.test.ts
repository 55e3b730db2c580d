// One live channel a node, whichever replica it is on.

import type { ProbeAnswer } from '#plane/liveness/probe.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Refusal } from '#domain/core/refusal.ts'
import { withdrawIdentity, type Withdrawn } from '#plane/revocation/withdraw-identity.ts'
import { instanceOf, reportOf } from '../fakes/agent-words.ts'
import { alice } from '../fakes/sample-rows.ts'
import { closingOf, hello, setUpReplicas, turns } from './replicas-setup.ts'

const node = 'gpu-001'

const stolen = { kind: 'revoke', reason: 'stolen', reasonCode: 'unspecified' } as const

test('of two copies that open at once on two replicas exactly one wins, and the other is told which one is there', async (t) => {
  for (let round = 0; round < 5; round++) {
    const { replicas, patiently } = await setUpReplicas(t, 3)
    const [a, b, c] = replicas
    assert.ok(a && b && c)
    const dialled = [a.dial(node, 'a'), b.dial(node, 'b'), c.dial(node, 'c')]
    const outcomes = await patiently(Promise.all(dialled.map(({ outcome }) => outcome)))
    assert.deepEqual(outcomes.toSorted(), ['DUPLICATE_IDENTITY', 'DUPLICATE_IDENTITY', 'opened'])
    assert.equal(a.sessions.count() + b.sessions.count() + c.sessions.count(), 1)
  }
})

test('a channel that is being opened on another replica is waited for: no replica takes a node that is claimed already', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const slow = Promise.withResolvers<void>()
  a.held.beforeRead = () => slow.promise
  const first = a.dial(node, 'a')
  await turns()
  assert.equal((await a.store.replicas.holds.of(node))?.instance, instanceOf('a'))
  const second = b.dial(node, 'b')
  await turns()
  assert.equal(b.sessions.count(), 0)
  slow.resolve()
  assert.deepEqual(await patiently(Promise.all([first.outcome, second.outcome])), ['opened', 'DUPLICATE_IDENTITY'])
})

test('a process that moves to another replica is let in at once, and its older channel drains', async (t) => {
  const { replicas, pass } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const older = a.dial(node, 'a')
  assert.equal(await older.outcome, 'opened')
  const newer = b.dial(node, 'a')
  assert.equal(await newer.outcome, 'opened')
  await pass(5000)
  assert.deepEqual([older.ended(), newer.ended()], [false, false])
  await pass(6000)
  assert.deepEqual([older.ended(), closingOf(older), newer.ended()], [true, 'REPLACED', false])
  assert.equal((await a.store.replicas.holds.of(node))?.replica, b.store.replicas.self)
})

test('a node that came back here before its draining was over keeps its newest channel', async (t) => {
  const { replicas, pass } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const first = a.dial(node, 'a')
  await first.outcome
  // It hears late that the node had moved.
  a.mute(true)
  const second = b.dial(node, 'a')
  await second.outcome
  const third = a.dial(node, 'a')
  await third.outcome
  a.mute(false)
  await pass(16_000)
  assert.deepEqual([first.ended(), second.ended(), third.ended()], [true, true, false])
  assert.equal((await b.store.replicas.holds.of(node))?.replica, a.store.replicas.self)
})

test('a process that was killed leaves a silent channel on another replica: it is probed, ended, replaced', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const dead = a.dial(node, 'a')
  await dead.outcome
  dead.hush()
  const next = b.dial(node, 'b')
  await turns()
  assert.equal(b.sessions.count(), 0)
  assert.equal(await patiently(next.outcome), 'opened')
  assert.deepEqual([closingOf(dead), a.sessions.count(), b.sessions.count()], ['REPLACED', 0, 1])
})

test('while the replica that holds it has a lease and does not answer no other caller is let in; once it is gone, at once', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await a.dial(node, 'a').outcome
  a.mute(true)
  assert.equal(await patiently(b.dial(node, 'b').outcome), 'UNAVAILABLE')
  assert.equal(b.sessions.count(), 0)
  // The same process may move: it is the holder, and needs nobody's word for it.
  a.die()
  assert.equal(await b.dial(node, 'b').outcome, 'opened')
})

test('the agents of a replica that died are let in elsewhere while its lease still lasts', async (t) => {
  const { replicas } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await a.dial(node, 'a').outcome
  a.mute(true)
  assert.equal(await b.dial(node, 'a').outcome, 'opened')
})

test('a move that comes to nothing leaves the channel where it was, and every replica finds it there', async (t) => {
  const { replicas } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const kept = a.dial(node, 'a')
  await kept.outcome
  const slow = Promise.withResolvers<void>()
  b.held.beforeRead = () => slow.promise
  const moving = b.dial(node, 'a')
  await turns()
  b.stand('behind')
  slow.resolve()
  assert.equal(await moving.outcome, 'REPLICA_BEHIND')
  await turns()
  assert.equal((await b.store.replicas.holds.of(node))?.replica, a.store.replicas.self)
  assert.equal(kept.ended(), false)
})

test('a channel that ends has no holder, and of two on one replica the one that is left has', async (t) => {
  const { replicas } = await setUpReplicas(t, 2)
  const [a] = replicas
  assert.ok(a)
  const { holds } = a.store.replicas
  const [first, second] = [a.dial(node, 'a'), a.dial(node, 'a')]
  await Promise.all([first.outcome, second.outcome])
  second.hangUp()
  await turns()
  assert.equal((await holds.of(node))?.number, a.sessions.of(node)[0]?.number)
  first.hangUp()
  await turns()
  assert.equal(await holds.of(node), null)
})

test('a caller that hangs up while its channel opens leaves no claim behind', async (t) => {
  const { replicas } = await setUpReplicas(t, 1)
  const [a] = replicas
  assert.ok(a)
  const slow = Promise.withResolvers<void>()
  a.held.beforeRead = () => slow.promise
  const channel = a.dial(node, 'a')
  await turns()
  channel.hangUp()
  await turns()
  slow.resolve()
  await channel.outcome
  await turns()
  assert.deepEqual([a.sessions.count(), await a.store.replicas.holds.of(node)], [0, null])
})

test('out of touch a replica takes no session and acts on no frame; back in touch it goes on where it stopped', async (t) => {
  const { replicas, base } = await setUpReplicas(t, 2)
  const [a] = replicas
  assert.ok(a)
  const channel = a.dial(node, 'a')
  await channel.outcome
  channel.send('hello', hello)
  await turns()
  a.stand('behind')
  assert.equal(await a.dial(node, 'a').outcome, 'REPLICA_BEHIND')
  channel.send('report', reportOf('a', 1))
  await turns()
  assert.equal((await base.observation(node)).report, null)
  a.stand('serving')
  await turns()
  assert.equal((await base.observation(node)).report?.number, 1)
  assert.equal(channel.frames.at(-1)?.type, 'reported')
})

test('a node that was revoked while a replica slept past its lease has none of its queued frames acted on', async (t) => {
  const { replicas, base, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const channel = a.dial(node, 'a')
  await channel.outcome
  channel.send('hello', hello)
  await turns()
  // It receives and answers nothing. Its clocks say so when it wakes, before any other replica does.
  a.mute(true)
  a.stand('behind')
  const receipt = withdrawIdentity(b, b, node, stolen, alice)
  const withdrawn = await patiently(receipt)
  assert.deepEqual(proofsOf(withdrawn), ['itself 0', 'not effective'])
  for (const number of [1, 2, 3]) channel.send('report', reportOf('a', number))
  a.stand('expired')
  await turns()
  assert.deepEqual([channel.ended(), a.sessions.count(), (await base.observation(node)).report], [true, 0, null])
})

test('a revocation cuts the channels of every replica, and its receipt counts them', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 3)
  const [a, b, c] = replicas
  assert.ok(a && b && c)
  const channel = b.dial(node, 'a')
  await channel.outcome
  const withdrawn = await patiently(withdrawIdentity(a, a, node, stolen, alice))
  assert.deepEqual(proofsOf(withdrawn), ['itself 0', 'acknowledged 1', 'acknowledged 0', 'effective'])
  assert.deepEqual([channel.ended(), closingOf(channel), b.sessions.count()], [true, 'CLIENT_CERT_DENIED', 0])
  assert.equal(await c.dial(node, 'a').outcome, 'NODE_REVOKED')
})

const proofsOf = (withdrawn: Withdrawn | Refusal): readonly string[] => {
  assert.ok(withdrawn.kind === 'withdrawn', JSON.stringify(withdrawn))
  const { replicas, effectiveAtMs } = withdrawn.receipt
  return [
    ...replicas.map(({ how, channels }) => `${how} ${channels}`),
    effectiveAtMs === null ? 'not effective' : 'effective',
  ]
}

test('a replica that is silent about a revocation is waited for, one that is gone is not', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 3)
  const [a, b, c] = replicas
  assert.ok(a && b && c)
  b.mute(true)
  c.die()
  const withdrawn = await patiently(withdrawIdentity(a, a, node, { kind: 'quarantine', reason: 'odd' }, alice))
  assert.deepEqual(proofsOf(withdrawn), ['itself 0', 'not effective'])
})

test('operators see a channel wherever it is, and a channel alone does not keep its node from being decommissioned (P3)', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await b.dial(node, 'a').outcome
  const [session] = b.channels.openSessions(node)
  assert.deepEqual(await a.channels.everySession(node), [session])
  assert.equal(await a.channels.isConnected(node), true)
  b.mute(true)
  assert.deepEqual(await patiently(a.channels.everySession(node)), [
    { number: session?.number, sinceMs: null, serial: null },
  ])
  b.mute(false)
  const done = await patiently(withdrawIdentity(a, a, node, { kind: 'decommission', force: false }, alice))
  assert.equal('code' in done && done.code, false, JSON.stringify(done))
})

const isSilent = (answer: ProbeAnswer): boolean => typeof answer === 'object' && answer.silentMs >= 6000

test('a probe asks the replica that has the channel: an answer there is one, silence is silence, no answer is neither', async (t) => {
  const { replicas, patiently, pass } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await pass(10_000)
  const channel = a.dial(node, 'a')
  await channel.outcome
  assert.equal(await patiently(b.probe(node, 6000)), 'answered')
  a.mute(true)
  assert.equal(await patiently(b.probe(node, 6000)), 'unknown')
  a.mute(false)
  channel.hush()
  assert.ok(isSilent(await patiently(b.probe(node, 6000))))
  // Moved while it was probed where it was before.
  const asked = b.probe(node, 6000)
  await turns()
  await b.dial(node, 'a').outcome
  assert.equal(await patiently(asked), 'answered')
})

test('a node whose channel on another replica ended a moment ago is given the time to come back', async (t) => {
  const { replicas, patiently, pass, clock } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await pass(10_000)
  const channel = a.dial(node, 'a')
  await channel.outcome
  channel.hangUp()
  await pass(1000)
  const startedMs = clock.monotonicMs()
  assert.ok(isSilent(await patiently(b.probe(node, 6000))))
  const tookMs = clock.monotonicMs() - startedMs
  assert.ok(tookMs >= 4500 && tookMs <= 6000, `${tookMs} ms`)
  assert.ok(isSilent(await b.probe(node, 6000)))
  a.mute(true)
  assert.equal(await patiently(b.probe(node, 6000)), 'unknown')
})

test('a holder on another replica is named; a caller is not another holder than itself', async (t) => {
  const { replicas, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const channel = a.dial(node, 'a')
  await channel.outcome
  const found = await patiently(b.holders.other(node, instanceOf('b')))
  assert.ok(found !== null && found !== 'unknown')
  assert.deepEqual([found.evidence?.instance, found.serial], [instanceOf('a'), 'a1'])
  assert.equal(await b.holders.other(node, instanceOf('a')), null)
  assert.deepEqual(
    [await b.holders.isConnected(node, instanceOf('a')), await b.holders.isConnected(node, instanceOf('b'))],
    [true, false],
  )
  a.mute(true)
  assert.equal(await patiently(b.holders.other(node, instanceOf('b'))), 'unknown')
  assert.equal(await patiently(b.holders.awaitReturn(node)), 'nothing')
})

test('reports go on in order wherever they are taken: a node that moved away and back is never stuck', async (t) => {
  const { replicas, base } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  const reported = async (replica: typeof a, from: number, to: number): Promise<number> => {
    const channel = replica.dial(node, 'a')
    assert.equal(await channel.outcome, 'opened')
    channel.send('hello', hello)
    for (let number = from; number <= to; number++) channel.send('report', reportOf('a', number))
    await turns()
    channel.hangUp()
    await turns()
    return channel.frames.filter(({ type }) => type === 'reported').at(-1)?.body.number
  }
  assert.equal(await reported(a, 1, 3), 3)
  assert.equal(await reported(b, 4, 9), 9)
  assert.equal(await reported(a, 10, 11), 11)
  assert.equal((await base.observation(node)).report?.number, 11)
})

test('a late request of the process that has moved on is its own, whichever replica it comes to', async (t) => {
  const { replicas, base, patiently } = await setUpReplicas(t, 2)
  const [a, b] = replicas
  assert.ok(a && b)
  await b.dial(node, 'a').outcome
  const row = await base.get('node', node)
  assert.ok(row)
  assert.equal(await a.holders.isCurrent(row.value, instanceOf('a')), true)
  assert.equal(await a.holders.isCurrent(row.value, instanceOf('b')), false)
  b.mute(true)
  assert.equal(await patiently(a.holders.isCurrent(row.value, instanceOf('a'))), 'unknown')
})
