// Several replicas over one real PostgreSQL: who leads, who has a lease, and what becomes of them when the database or the
// way to it does not answer.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualPace } from '#plane/store/postgres/replica-pace.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import { systemClock } from '#platform/clock.ts'
import { withPeer } from '../peers/peer.ts'
import { quickPace, replicaSite, type TestReplica } from './postgres-replica.ts'
import { eventually } from '../process/eventually.ts'
import { startPostgres, startStandby } from '../process/postgres-server.ts'
import { newNode } from './harness.ts'

const leaders = (replicas: readonly TestReplica[]): readonly TestReplica[] =>
  replicas.filter(({ replicas: its }) => its.leadership() !== null)

const nodesPublished = ({ published }: TestReplica): readonly string[] =>
  published.flatMap(({ entries }) => entries.map(({ entry }) => entry.node ?? ''))

const ledBy = async (replicas: readonly TestReplica[], withinMs: number): Promise<TestReplica> => {
  const [leader] = await eventually('somebody to lead', () => leaders(replicas).length > 0 && leaders(replicas), {
    withinMs,
  })
  return leader as TestReplica
}

test('of three replicas exactly one leads, and each of them knows all three', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const three = await Promise.all([site.open(), site.open(), site.open()])
  const leader = await ledBy(three, 2000)
  await eventually('all to be counted', () => three.every(({ replicas }) => replicas.count() === 3))
  for (const { replicas } of three) {
    const leased = await replicas.leased()
    assert.deepEqual(
      leased.map(({ number }) => number),
      three.map((each) => each.replicas.self).toSorted((one, other) => one - other),
    )
    assert.deepEqual(
      leased.filter(({ leads }) => leads).map(({ number }) => number),
      [leader.replicas.self],
    )
    assert(Math.abs((leased[0]?.startedAtMs ?? 0) - Date.now()) < 60_000)
  }
  assert.equal(leaders(three).length, 1)
})

test('a leader that closes is followed by another at once, with a higher fencing token, and leaves nothing behind', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const three = await Promise.all([site.open(), site.open(), site.open()])
  const first = await ledBy(three, 2000)
  const fencingToken = first.replicas.leadership()
  await first.close()
  assert.equal(first.self(), null)
  assert.equal(first.led.at(-1), null)
  const second = await ledBy(
    three.filter((one) => one !== first),
    2 * quickPace.renewEveryMs + 500,
  )
  assert((second.replicas.leadership()?.number ?? 0) > (fencingToken?.number ?? Infinity))
  const { rows } = await site.connection.run({ name: 'left', text: 'SELECT FROM replica WHERE number = $1' }, [
    first.replicas.self,
  ])
  assert.deepEqual(rows, [])
})

test('a leader that is cut off stops, then loses its lease; another leads, and the old fencing token is refused', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const cutOff = await site.openBehindProxy()
  await ledBy([cutOff], 2000)
  const others = await Promise.all([site.open(), site.open()])
  await eventually('all to be counted', () => cutOff.replicas.count() === 3)
  await cutOff.commit(newNode('before'))
  const oldNumber = cutOff.replicas.self
  const oldToken = cutOff.replicas.leadership()
  assert(oldToken !== null)

  cutOff.proxy.blackhole()
  const cutAtMs = performance.now()
  const since = (): number => performance.now() - cutAtMs
  await eventually('it to be behind', () => cutOff.replicas.standing().kind === 'behind')
  assert(since() < quickPace.mostBehindMs + 1000)
  assert.equal(cutOff.replicas.leadership(), null)
  await eventually('it to be without a lease', () => cutOff.self() === null)
  assert(since() < quickPace.leaseMs + 1000)
  const leader = await ledBy(others, 2000)
  assert((leader.replicas.leadership()?.number ?? 0) > oldToken.number)
  await leader.commit(newNode('while-cut-off'))

  cutOff.proxy.pass()
  await eventually('it to serve again', () => cutOff.replicas.standing().kind === 'serving')
  assert(cutOff.replicas.self > oldNumber)
  await assert.rejects(cutOff.commit(newNode('late'), oldToken), StaleReplica)
  assert.equal(await cutOff.commit(newNode('again')).then((it) => it !== 'lost-race' && it.kind), 'committed')
  assert.deepEqual(nodesPublished(cutOff), ['while-cut-off'])
  assert.deepEqual(cutOff.standings, ['serving', 'behind', 'expired', 'behind', 'serving'])
  assert.deepEqual(cutOff.led, [oldToken.number, null])
})

test('a database that hangs takes every lease, and no replica gets its old one back', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const site = await replicaSite(t, await server.database(t))
  const two = await Promise.all([site.open(), site.open()])
  const [one, other] = two
  const before = two.map(({ replicas }) => replicas.self)
  await one.commit(newNode('before'))
  await eventually('it to be told', () => nodesPublished(other).length === 1)
  server.pause()
  await eventually('both to be behind', () => two.every((it) => it.standings.at(-1) === 'behind'))
  await eventually('both without a lease', () => two.every((it) => it.self() === null))
  const refused = assert.rejects(one.commit(newNode('without-lease')), StaleReplica)
  server.resume()
  await refused
  await eventually('both to serve again', () => two.every((it) => it.replicas.standing().kind === 'serving'))
  two.forEach(({ replicas }, at) => assert(replicas.self > (before[at] ?? Infinity)))
  await Promise.all([one.commit(newNode('from-one')), other.commit(newNode('from-other'))])
  await eventually('all to be told', () => nodesPublished(one).length === 1 && nodesPublished(other).length === 2)
  assert.deepEqual([nodesPublished(one), nodesPublished(other)], [['from-other'], ['before', 'from-one']])
  await ledBy(two, 2000)
})

test('a server that starts anew is found again, and nothing is missed', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const site = await replicaSite(t, await server.database(t))
  const two = await Promise.all([site.open(), site.open()])
  await two[0].commit(newNode('before'))
  await server.stop('crash')
  await server.start()
  await eventually('it to be written again', () => two[0].commit(newNode('after')), { withinMs: 15_000, everyMs: 200 })
  await eventually('both to be told', () => nodesPublished(two[1]).length === 2)
  assert.deepEqual(nodesPublished(two[1]), ['before', 'after'])
})

test('a primary that was given up and runs on is left for the one that was promoted', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const givenUp = await startPostgres(t)
  const database = await givenUp.database(t)
  const site = await replicaSite(t, database)
  const promoted = await startStandby(t, givenUp)
  await site.connection.exec("ALTER SYSTEM SET synchronous_standby_names = '*'")
  await site.connection.run({ name: 'reload', text: 'SELECT pg_reload_conf()' })
  const hosts = [givenUp, promoted].map(({ folder, port }) => ({ host: folder, port }))
  const replica = await site.open({ target: { ...database.target, hosts } })
  await replica.commit(newNode('before'))
  await promoted.promote()
  await eventually('it to be written again', () => replica.commit(newNode('after')), { withinMs: 20_000 })
  const askPort = { name: 'port', text: "SELECT current_setting('port')::int AS port" }
  assert.deepEqual((await replica.access.read(askPort)).rows, [{ port: promoted.port }])
  await eventually('it to serve', () => replica.replicas.standing().kind === 'serving')
})

test('a wall clock that jumps ahead costs the lease for a moment, which is reported; set back it costs nothing', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  let offsetMs = 0
  const clock = { ...systemClock, nowMs: () => Date.now() + offsetMs }
  const replica = await site.open({ clock })
  const fencingToken = await ledBy([replica], 2000).then((it) => it.replicas.leadership())
  const number = replica.replicas.self
  offsetMs = 3_600_000
  assert.equal(replica.replicas.standing().kind, 'expired')
  assert.equal(replica.self(), null)
  await eventually('it to serve again', () => replica.replicas.standing().kind === 'serving')
  assert.deepEqual(replica.standings, ['serving', 'expired', 'behind', 'serving'])
  offsetMs = 0
  await eventually('a renewal under the clock that was set back', () => replica.led.length >= 3)
  await new Promise((resolve) => setTimeout(resolve, 3 * quickPace.renewEveryMs))
  assert.deepEqual(replica.standings, ['serving', 'expired', 'behind', 'serving'])
  assert.equal(replica.replicas.self, number)
  assert.deepEqual(replica.led, [fencingToken?.number, null, fencingToken?.number])
})

test('a lease that was removed is noticed at the next renewal, and there is a new number', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const replica = await site.open()
  const before = replica.replicas.self
  await site.connection.exec('DELETE FROM replica')
  await eventually('a new number', () => replica.replicas.self > before)
  assert(replica.standings.includes('expired'))
  await eventually('it to serve again', () => replica.replicas.standing().kind === 'serving')
})

test('what replicas without a lease left behind is removed by the leader', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const replica = await site.open()
  await site.connection.exec(`
    INSERT INTO replica (name, version, started_at, expires_at)
      VALUES ('dead', '1', now(), now() - interval '1 hour'), ('late', '1', now(), now() + interval '1 hour');
    INSERT INTO holder SELECT 'of-dead', number, 1, NULL FROM replica WHERE name = 'dead';
    INSERT INTO holder SELECT 'of-late', number, 1, NULL FROM replica WHERE name = 'late'`)
  const left = {
    name: 'left',
    text: 'SELECT name, node FROM replica LEFT JOIN holder ON replica = number ORDER BY name',
  }
  const held = { name: 'held', text: 'SELECT node FROM holder' }
  await eventually('the dead one to be forgotten', async () => (await site.connection.run(left)).count === 2)
  await eventually('and what it held', async () => (await site.connection.run(held)).count === 1)
  assert.deepEqual((await site.connection.run(left)).rows, [
    { name: 'late', node: 'of-late' },
    { name: 'test', node: null },
  ])
  assert.equal(replica.replicas.standing().kind, 'serving')
})

test('a lease lasts 15 s and is renewed every second; a connection that does not answer is given up long before', () => {
  assert.deepEqual([usualPace.leaseMs, usualPace.mostBehindMs, usualPace.renewEveryMs], [15_000, 10_000, 1000])
  assert(2 * usualPace.answerWithinMs + 2 * usualPace.renewEveryMs < usualPace.mostBehindMs)
})
