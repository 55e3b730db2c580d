// Who holds the channel of a node, and what replicas say to each other about it, over a real PostgreSQL.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeId } from '#domain/core/node.ts'
import type { HeldSession, Hold } from '#plane/store/contract/replicas.ts'
import { StaleReplica, StoreFault } from '#plane/store/contract/store-errors.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { withPeer } from '../peers/peer.ts'
import { quickPace, replicaSite, type ReplicaSite, type TestReplica } from './postgres-replica.ts'
import { eventually, within } from '../process/eventually.ts'
import { newNode, note, putNode, read, someTimeMs } from './harness.ts'

const active = { membership: { kind: 'active', sinceMs: someTimeMs, slots: {} as never } } as const
const session = (number: number, instance: string | null = null): HeldSession => ({ number, instance })
const holdsOf = ({ replicas }: TestReplica) => replicas.holds
const held = (replica: TestReplica, { number, instance }: HeldSession): Hold => ({
  replica: replica.replicas.self,
  number,
  instance,
})

const addNodes = async (replica: TestReplica, nodes: readonly NodeId[]): Promise<void> => {
  await Promise.all(nodes.map((node) => replica.commit(newNode(node, active))))
}

/** A transaction of another client that has locked the row of a node. */
const lockNode = async ({ database }: ReplicaSite, node: NodeId): Promise<PgConnection> => {
  const other = await database.connect()
  await other.exec('BEGIN')
  await other.run({ name: 'lock', text: 'SELECT FROM node WHERE key = $1 FOR NO KEY UPDATE' }, [node])
  return other
}

test('a hold is found by every replica, and another instance does not get it without further ado', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.open(), site.open()])
  await addNodes(one, ['n1', 'n2'])
  assert.deepEqual((await holdsOf(other).absent()).toSorted(), ['n1', 'n2'])
  assert.equal(await holdsOf(one).take('n1', session(7, 'agent-a'), null), 'held')
  const first = held(one, session(7, 'agent-a'))
  assert.deepEqual(await holdsOf(other).of('n1'), first)
  assert.deepEqual(await holdsOf(one).of('n1'), first)
  assert.equal(await holdsOf(other).of('n2'), null)
  assert.deepEqual(await holdsOf(other).absent(), ['n2'])

  assert.deepEqual(await holdsOf(other).take('n1', session(8, 'agent-b'), null), first)
  assert.deepEqual(await holdsOf(other).take('n1', session(8, null), { ...first, number: 6 }), first)
  assert.deepEqual(await holdsOf(one).of('n1'), first)

  assert.equal(await holdsOf(other).take('n1', session(9, 'agent-a'), null), 'held')
  assert.equal(await holdsOf(other).take('n1', session(10, 'agent-c'), null), 'held')
  const third = held(other, session(10, 'agent-c'))
  assert.equal(await holdsOf(one).take('n1', session(11, 'agent-d'), third), 'held')
  assert.deepEqual(await holdsOf(other).of('n1'), held(one, session(11, 'agent-d')))
})

test('a session that has ended is released, and a newer one is not', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.open(), site.open()])
  await addNodes(one, ['n1', 'n2'])
  await holdsOf(one).take('n1', session(1), null)
  await holdsOf(one).take('n1', session(2), null)
  await holdsOf(one).take('n2', session(3), null)
  holdsOf(one).release('n1', 1)
  holdsOf(one).release('n2', 3)
  holdsOf(other).release('n1', 2)
  await eventually('it to be released', async () => (await holdsOf(other).of('n2')) === null)
  await new Promise((resolve) => setTimeout(resolve, 3 * quickPace.releaseEveryMs))
  assert.deepEqual(await holdsOf(other).of('n1'), held(one, session(2)))
})

test('releases survive a connection that breaks', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.openBehindProxy(), site.open()])
  const nodes = Array.from({ length: 40 }, (_, at) => `n${at}`)
  await addNodes(other, nodes)
  assert.deepEqual(
    new Set(await Promise.all(nodes.map((node, at) => holdsOf(one).take(node, session(at), null)))),
    new Set(['held']),
  )
  assert.deepEqual(await holdsOf(other).absent(), [])
  one.proxy.cut()
  nodes.forEach((node, at) => holdsOf(one).release(node, at))
  one.proxy.cut()
  await eventually('all to be released', async () => (await holdsOf(other).absent()).length === nodes.length)
})

test('of 50 that take the hold of one node at once, from three replicas, one gets it and the others learn which', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const three = await Promise.all([site.open(), site.open(), site.open()])
  const nodes = ['a', 'b', 'c', 'd']
  await addNodes(three[0], nodes)
  for (const node of nodes) {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, async (_, at) => {
        const replica = three[at % 3] as TestReplica
        return { replica, at, outcome: await holdsOf(replica).take(node, session(at, `agent-${at}`), null) }
      }),
    )
    const winners = new Set(outcomes.filter(({ outcome }) => outcome === 'held').map(({ replica }) => replica))
    assert.equal(winners.size, 1)
    const [winner] = winners
    // Within one replica the last session has it: it knows its own sessions.
    const last = outcomes.findLast(({ replica }) => replica === winner)
    for (const { replica, outcome } of outcomes) {
      if (replica !== winner) assert.equal(outcome !== 'held' && outcome.replica, winner?.replicas.self)
    }
    assert.equal((await holdsOf(three[1]).of(node))?.number, last?.at)
  }
})

test('two replicas that take the holds of the same thousand nodes at once, in opposite orders, share them without a deadlock', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const two = await Promise.all([site.open(), site.open()])
  const nodes = Array.from({ length: 1000 }, (_, at) => `n${String(at).padStart(4, '0')}`)
  await site.connection.run(
    { name: 'fill', text: `INSERT INTO node SELECT key, 1, '{}', 'active', 'p' FROM unnest($1::text[]) AS key` },
    [nodes],
  )
  const takeAll = (replica: TestReplica, order: readonly NodeId[], prefix: string) =>
    Promise.all(order.map((node, at) => holdsOf(replica).take(node, session(at, `${prefix}${node}`), null)))
  const [ones, others] = await within(
    'all to be taken',
    10_000,
    Promise.all([takeAll(two[0], nodes, 'x'), takeAll(two[1], nodes.toReversed(), 'y')]),
  )
  nodes.forEach((node, at) => {
    const both = [ones[at], others[nodes.length - 1 - at]]
    assert.equal(both.filter((outcome) => outcome === 'held').length, 1, node)
  })
  assert.deepEqual(await holdsOf(two[0]).absent(), [])
})

test('what a replica held that lost its lease is free, and nothing of it counts', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [dead, other] = await Promise.all([site.openBehindProxy(), site.open()])
  await addNodes(other, ['n1', 'n2'])
  await holdsOf(dead).take('n1', session(1, 'agent-a'), null)
  await holdsOf(dead).take('n2', session(2, 'agent-b'), null)
  const before = held(dead, session(1, 'agent-a'))
  dead.proxy.blackhole()
  assert.deepEqual(await holdsOf(other).take('n1', session(5, 'agent-c'), null), before)
  await eventually('it to be behind', () => dead.replicas.standing().kind === 'behind')
  await assert.rejects(holdsOf(dead).take('n1', session(3, 'agent-a'), null), StaleReplica)
  await eventually('its lease to be over for all', async () => (await holdsOf(other).of('n1')) === null)
  assert.equal(dead.self(), null)
  assert.deepEqual((await holdsOf(other).absent()).toSorted(), ['n1', 'n2'])
  assert.equal(await holdsOf(other).take('n1', session(6, 'agent-c'), null), 'held')
  dead.proxy.pass()
  await eventually('it to serve again', () => dead.replicas.standing().kind === 'serving')
  holdsOf(dead).release('n1', 1)
  assert.deepEqual(await holdsOf(dead).take('n1', session(4, 'agent-d'), null), held(other, session(6, 'agent-c')))
})

test('a replica that closes holds nothing any more', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.open(), site.open()])
  await addNodes(other, ['n1'])
  await holdsOf(one).take('n1', session(1, 'agent-a'), null)
  await one.close()
  assert.equal(await holdsOf(other).of('n1'), null)
  await assert.rejects(holdsOf(one).take('n1', session(2), null), StoreFault)
})

test('a replica that closes gives its channels back in the order in which others take them', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const one = await site.open({ pace: { ...quickPace, answerWithinMs: 5000 } })
  await addNodes(one, ['n1', 'n2'])
  for (const node of ['n2', 'n1']) await holdsOf(one).take(node, session(1, 'agent-a'), null)
  const taker = await site.database.connect()
  await taker.exec("BEGIN; SELECT FROM holder WHERE node = 'n1' FOR UPDATE")
  const closing = one.close()
  const waits = {
    name: 'waits',
    text: `SELECT FROM pg_stat_activity WHERE application_name = 'muster lease'
    AND datname = current_database() AND wait_event_type = 'Lock'`,
  }
  await eventually('it to wait for the taker', async () => (await site.connection.run(waits)).count === 1)
  await taker.exec("SELECT FROM holder WHERE node = 'n2' FOR UPDATE NOWAIT; COMMIT")
  await closing
  const left = { name: 'left', text: 'SELECT FROM holder UNION ALL SELECT FROM replica' }
  assert.equal((await site.connection.run(left)).count, 0)
})

test('a request for a hold waits for a commit that changes its node, and its neighbours do not', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const replica = await site.open()
  await addNodes(replica, ['n1', 'n2'])
  const lapse = await lockNode(site, 'n1')
  let outcome: unknown = null
  const waiting = holdsOf(replica).take('n1', session(1), null)
  void waiting.then((it) => (outcome = it))
  assert.equal(await holdsOf(replica).take('n2', session(2), null), 'held')
  assert.equal(outcome, null)
  await lapse.exec('COMMIT')
  assert.equal(await waiting, 'held')
  const stuck = await lockNode(site, 'n1')
  await assert.rejects(holdsOf(replica).take('n1', session(3), null), StoreFault)
  await stuck.exec('ROLLBACK')
})

test('a lapse and a channel that opens at the same moment: one of them sees the other', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.open(), site.open()])
  const nodes = Array.from({ length: 30 }, (_, at) => `n${at}`)
  await addNodes(one, nodes)
  const lapse = (node: NodeId) =>
    one.commit({
      reads: [read('node', node, 1)],
      writes: [putNode(node, { membership: { kind: 'inactive', sinceMs: someTimeMs, slots: {} as never } })],
      entries: [note(node, 'node.lapsed')],
      unheld: node,
    })
  const races = await Promise.all(
    nodes.map(async (node, at) => {
      const taken = holdsOf(other).take(node, session(at), null)
      const [lapsed] = await Promise.all([lapse(node), taken])
      // What a channel does next: it reads the node again.
      const { rows } = await site.connection.run({ name: 'node', text: 'SELECT membership FROM node WHERE key = $1' }, [
        node,
      ])
      return [lapsed === 'lost-race' ? 'lost-race' : 'lapsed', rows[0]?.['membership']]
    }),
  )
  for (const [lapsed, membership] of races)
    assert.equal(membership, lapsed === 'lapsed' ? 'inactive' : 'active', String(races))
  assert.equal(await lapse('n0'), 'lost-race')
})

test('a question is answered by the replica it is put to, in the words of its topic', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, other] = await Promise.all([site.open(), site.open()])
  other.replicas.onQuestion('echo', async (question, from) => ({ question, from }))
  other.replicas.onQuestion('nothing', async () => null)
  const asked = { text: 'is "it" there? \u00fc' }
  assert.deepEqual(await one.replicas.ask(other.replicas.self, 'echo', asked, 2000), {
    kind: 'answer',
    value: { question: asked, from: one.replicas.self },
  })
  assert.deepEqual(await one.replicas.ask(other.replicas.self, 'nothing', null, 2000), { kind: 'answer', value: null })
  assert.deepEqual(await other.replicas.ask(other.replicas.self, 'nothing', null, 2000), {
    kind: 'answer',
    value: null,
  })
  const many = await Promise.all(
    Array.from({ length: 200 }, (_, at) => one.replicas.ask(other.replicas.self, 'echo', at, 3000)),
  )
  assert.deepEqual(
    many.map((answer) => answer.kind === 'answer' && (answer.value as { question: number }).question),
    many.map((_, at) => at),
  )
  await assert.rejects(one.replicas.ask(other.replicas.self, 'echo', 'x'.repeat(8000), 2000), RangeError)
})

test('silence of a replica with a lease is no answer; once it has none, it is gone', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [one, silent] = await Promise.all([site.open(), site.openBehindProxy()])
  const number = silent.replicas.self
  let late = (): void => {}
  silent.replicas.onQuestion('late', () => new Promise((resolve) => (late = () => resolve('too late'))))
  silent.replicas.onQuestion('fails', () => Promise.reject(new Error('no')))
  assert.deepEqual(await one.replicas.ask(number, 'late', null, 100), { kind: 'no-answer' })
  late()
  assert.deepEqual(await one.replicas.ask(number, 'fails', null, 100), { kind: 'no-answer' })
  assert.deepEqual(await one.replicas.ask(number, 'unheard-of', null, 100), { kind: 'no-answer' })
  silent.replicas.onQuestion('echo', async (question) => question)
  silent.proxy.blackhole()
  assert.deepEqual(await one.replicas.ask(number, 'echo', 1, 100), { kind: 'no-answer' })
  await eventually('its lease to be over', () => silent.self() === null)
  await eventually('it to be gone for others', async () => {
    const { kind } = await one.replicas.ask(number, 'echo', 1, 50)
    assert.notEqual(kind, 'answer')
    return kind === 'gone'
  })
  assert.deepEqual(await silent.replicas.ask(one.replicas.self, 'echo', 1, 50), { kind: 'no-answer' })
  silent.proxy.pass()
  await eventually('it to serve again', () => silent.replicas.standing().kind === 'serving')
  assert.deepEqual(await one.replicas.ask(number, 'echo', 1, 100), { kind: 'gone' })
  await eventually('it to answer under its new number', async () => {
    return (await one.replicas.ask(silent.replicas.self, 'echo', 1, 500)).kind === 'answer'
  })
})

test('a replica that is cut off concludes nothing from silence', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [cutOff, other] = await Promise.all([site.openBehindProxy(), site.open()])
  await addNodes(other, ['n1'])
  const number = other.replicas.self
  cutOff.proxy.blackhole()
  await other.close()
  assert.deepEqual(await cutOff.replicas.ask(number, 'echo', 1, 100), { kind: 'no-answer' })
  await assert.rejects(holdsOf(cutOff).of('n1'), StoreFault)
})
