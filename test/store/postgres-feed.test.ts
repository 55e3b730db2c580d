// What one replica commits, told to the others: once, in order, never older than before, whatever is lost on the way.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entry } from '#domain/core/change.ts'
import { StoreFault, StoreInDoubt } from '#plane/store/contract/store-errors.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { alice } from '../fakes/sample-rows.ts'
import { withPeer } from '../peers/peer.ts'
import { quickPace, replicaSite, type TestReplica } from './postgres-replica.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { newNode, note, putNode, read, someCertificate, someToken } from './harness.ts'

const entriesOf = (published: readonly Committed[]) =>
  published.flatMap(({ entries }) => entries.map(({ entry }) => entry))
const nodesPublished = ({ published }: TestReplica): readonly (string | null)[] =>
  entriesOf(published).map(({ node }) => node)

const terminate = async (connection: PgConnection, purpose: string): Promise<number> =>
  (
    await connection.run(
      {
        name: 'terminate',
        text: `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name = $1 AND datname = current_database()`,
      },
      [`muster ${purpose}`],
    )
  ).count

test('three writers at once: each receives every commit of the others once, in the order of each chain', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const three = await Promise.all([site.open(), site.open(), site.open()])
  const rounds = 120
  await Promise.all(
    three.flatMap((replica, writer) =>
      Array.from({ length: rounds }, async (_, round) => {
        // Not all in one group: commits and feeds run past each other.
        await new Promise((resolve) => setTimeout(resolve, round * 3))
        await replica.commit(newNode(`node-${writer}-${round}`))
      }),
    ),
  )
  await eventually('all to be told', () => three.every(({ published }) => published.length >= 2 * rounds))
  await new Promise((resolve) => setTimeout(resolve, 2 * quickPace.renewEveryMs))
  three.forEach((replica, self) => {
    const entries = entriesOf(replica.published)
    const expected = [0, 1, 2]
      .filter((writer) => writer !== self)
      .flatMap((writer) => Array.from({ length: rounds }, (_, round) => `node-${writer}-${round}`))
    assert.deepEqual(entries.map(({ node }) => node).toSorted(), expected.toSorted())
    for (const ofChain of Map.groupBy(entries, ({ chain }) => chain).values())
      assert.deepEqual(
        ofChain.map(({ sequence }) => sequence),
        ofChain.map((_, at) => (ofChain[0]?.sequence ?? 0) + at),
      )
    for (const { writes, entries: its } of replica.published) {
      assert.deepEqual(
        writes.map((write) => write.put === 'node' && write.value.id),
        its.map(({ entry }) => entry.node),
      )
    }
  })
})

test('of the commits of others, certificates and tokens are not published: no subscriber keeps them', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.open()])
  const node = newNode('n0')
  const certificate = { put: 'certificate', value: someCertificate('01') } as const
  const token = { put: 'token', value: someToken('t0') } as const
  const absent = read('token', token.value.hash, 0)
  await writer.commit({ ...node, reads: [...node.reads, absent], writes: [...node.writes, certificate, token] })
  await eventually('it to be told', () => reader.published.length === 1)
  assert.deepEqual(
    reader.published[0]?.writes.map(({ put }) => put),
    ['node'],
  )
  assert.deepEqual(nodesPublished(reader), ['n0'])
})

test('without notifications nothing is missed, and they come back automatically', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.open({ pace: { ...quickPace, renewEveryMs: 500 } })])
  await writer.commit(newNode('n0'))
  await eventually('it to be told', () => reader.published.length === 1)
  for (const round of [1, 2, 3]) {
    await eventually('a connection to cut', async () => (await terminate(site.connection, 'messages')) >= 1)
    await writer.commit(newNode(`n${round}`))
    await eventually('it to be told all the same', () => reader.published.length === round + 1, { withinMs: 3000 })
  }
  await eventually('both to listen again', async () => {
    const listening = { name: 'l', text: `SELECT FROM pg_stat_activity WHERE application_name = 'muster messages'` }
    return (await site.connection.run(listening)).count >= 2
  })
  await eventually('hints to be quicker than renewals', async () => {
    const before = reader.published.length
    const passedMs = fairStopwatch()
    await writer.commit(newNode(`quick-${before}`))
    await eventually('it to be told', () => reader.published.length > before, { everyMs: 5 })
    return passedMs() < 150
  })
})

test('a commit made while the lease has no connection is published when it has one', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.openBehindProxy()])
  for (const round of [0, 1, 2]) {
    reader.proxy.cut()
    await Promise.all([writer.commit(newNode(`a${round}`)), writer.commit(newNode(`b${round}`))])
  }
  reader.proxy.freeze()
  await writer.commit(newNode('c'))
  await eventually('everything to be told', () => reader.published.length === 7)
  assert.deepEqual(new Set(nodesPublished(reader)), new Set(['a0', 'b0', 'a1', 'b1', 'a2', 'b2', 'c']))
  // On a busy machine it is out of touch for long enough to be behind; it has kept its lease all the same.
  assert.ok(!reader.standings.includes('expired'), reader.standings.join(' '))
  assert.equal(reader.standings.at(-1), 'serving')
})

test('a commit whose caller got no outcome is published like a commit of another replica', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const replica = await site.open()
  await replica.commit(newNode('answered'))
  const change = { ...newNode('in-doubt'), entries: [note('in-doubt'), note('in-doubt')] as const }
  const rejected = replica.commitHere(change, async () => {
    await replica.commitUnpublished(change)
    throw new StoreFault('it is not known whether this was committed', 'test')
  })
  await assert.rejects(rejected, StoreFault)
  await replica.commit(newNode('answered-later'))
  await eventually('it to be told', () => replica.published.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 2 * quickPace.renewEveryMs))
  assert.deepEqual(
    replica.published.map(({ origin, entries }) => [origin, ...entries.map(({ entry }) => entry.node)]),
    [['elsewhere', 'in-doubt', 'in-doubt']],
  )
})

test('a commit that is readable before it is answered here is left to its flow', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [replica, other] = await Promise.all([site.open(), site.open()])
  const slow = newNode('slow')
  const answered = replica.commitHere(slow, async () => {
    const committed = await replica.commitUnpublished(slow)
    await eventually('others to hear of it', () => nodesPublished(other).includes('slow'))
    await new Promise((resolve) => setTimeout(resolve, 3 * quickPace.renewEveryMs))
    return committed
  })
  await other.commit(newNode('meanwhile'))
  await eventually('others to be published all the same', () => nodesPublished(replica).includes('meanwhile'))
  await answered
  await other.commit(newNode('afterwards'))
  await eventually('the feed to go on', () => nodesPublished(replica).includes('afterwards'))
  assert.deepEqual(nodesPublished(replica), ['meanwhile', 'afterwards'])
  assert.deepEqual(replica.standings, ['serving'])
})

test('a row that two replicas change in turns is never published older than before, to either of them', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const two = await Promise.all([site.open(), site.open()])
  const received = two.map(() => [] as number[])
  const hear = (at: number, { writes }: Committed): void => {
    for (const write of writes) if (write.put === 'node') received[at]?.push(write.value.counter)
  }
  two.forEach((replica, at) => replica.onForeignCommit((committed) => hear(at, committed)))
  let version = 0
  const turns = 60
  await Promise.all(
    two.map(async (replica, at) => {
      while (version < turns) {
        const next = version + 1
        const outcome = await replica.commit({
          reads: [read('node', 'n1', next - 1)],
          writes: [putNode('n1', { counter: next })],
          entries: [note('n1')],
        })
        if (outcome === 'lost-race') continue
        version = Math.max(version, next)
        hear(at, outcome)
      }
    }),
  )
  await eventually('the last to reach both', () => received.every((versions) => versions.at(-1) === version))
  for (const versions of received) {
    assert.deepEqual(
      versions,
      versions.toSorted((one, other) => one - other),
    )
  }
})

test('a hole in a chain is never stepped over: the replica falls behind instead', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const writer = await site.open()
  await writer.commit(newNode('before'))
  const reader = await site.openBehindProxy()
  reader.proxy.blackhole()
  await writer.commit(newNode('lost'))
  await writer.commit(newNode('behind-it'))
  await site.connection.exec(`DELETE FROM journal WHERE node = 'lost'`)
  reader.proxy.pass()
  await eventually('it to be behind', () => reader.replicas.standing().kind === 'behind')
  assert.deepEqual(nodesPublished(reader), [])
  assert.equal(writer.replicas.standing().kind, 'serving')
})

test('R1: a database that has lost what was read from it is in doubt for its reader and its writer at once, and for good', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.openBehindProxy()])
  await writer.commit(newNode('kept'))
  await writer.commit(newNode('lost'))
  await eventually('both to be told', () => reader.published.length === 2)
  // As a standby would have it that was promoted without the last commit.
  await site.connection.exec(`DELETE FROM journal WHERE node = 'lost';
    UPDATE chain SET sequence = sequence - 1, hash = (SELECT hash FROM journal WHERE node = 'kept')`)
  const passedMs = fairStopwatch()
  await assert.rejects(writer.commit(newNode('again')), StoreInDoubt)
  await eventually('both to know', () =>
    [reader, writer].every(({ replicas }) => replicas.standing().kind === 'in-doubt'),
  )
  assert.ok(passedMs() < quickPace.mostBehindMs, 'without waiting for what silence is given')
  assert.notEqual(reader.self(), null)
  assert.equal(writer.replicas.leadership(), null)

  // Its own chain grows back to where it was, by other entries: R1b.
  await site.connection.exec(`INSERT INTO journal (chain, sequence, operation, bytes, hash, node, type)
      SELECT chain, sequence + 1, 'other-0', bytes, sha256(hash), node, type FROM journal;
    UPDATE chain SET sequence = sequence + 1, hash = (SELECT hash FROM journal ORDER BY sequence DESC LIMIT 1)`)
  await new Promise((resolve) => setTimeout(resolve, 3 * quickPace.renewEveryMs))
  for (const one of [reader, writer]) {
    assert.equal(one.replicas.standing().kind, 'in-doubt')
    await assert.rejects(one.commit(newNode('granted')), StoreInDoubt)
  }
  // Taking rights away stays possible, on a chain of its own: no place has two signed entries.
  const revoked = { reads: [], writes: [], entries: [entry(alice, 0, 'host.revoked', {}, {})] } as const
  const outcome = await writer.commit(revoked)
  assert(outcome !== 'lost-race')
  assert.equal(outcome.entries[0]?.entry.sequence, 1)
})

test('R1b: a chain of the old length with another hash is noticed inside the next transaction', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const writer = await site.open({ pace: { ...quickPace, renewEveryMs: 3000 } })
  await writer.commit(newNode('kept'))
  await writer.commit(newNode('lost'))
  await site.connection.exec(`UPDATE journal SET hash = sha256(hash) WHERE node = 'lost';
    UPDATE chain SET hash = (SELECT hash FROM journal WHERE node = 'lost')`)
  await assert.rejects(writer.commit(newNode('next')), StoreInDoubt)
  assert.notEqual(writer.replicas.standing().kind, 'serving')
  await eventually('it to be in doubt', () => writer.replicas.standing().kind === 'in-doubt')
  assert.deepEqual((await site.connection.run({ name: 'n', text: 'SELECT FROM journal' })).count, 2)
})

test('R1: another replica that takes a chain over, and a chain that is pruned, are no loss', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [first, reader] = await Promise.all([site.open(), site.open()])
  for (const id of ['a', 'b', 'c']) await first.commit(newNode(id))
  await eventually('it to be told', () => reader.published.length === 3)
  await first.close()
  await site.connection
    .exec(`UPDATE chain SET (base_sequence, base_hash) = (SELECT 3, hash FROM journal WHERE sequence = 3);
    DELETE FROM journal WHERE sequence <= 3`)
  const second = await site.open()
  await second.commit(newNode('d'))
  await reader.commit(newNode('e'))
  await eventually('it to be told', () => nodesPublished(reader).includes('d'))
  assert.deepEqual([reader.replicas.standing().kind, second.replicas.standing().kind], ['serving', 'serving'])
})

test('a subscriber that fails does not keep others from a commit', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.open()])
  const received: string[] = []
  reader.onForeignCommit(() => {
    throw new Error('this one always fails')
  })
  reader.onForeignCommit(({ entries }) => void received.push(String(entries[0]?.entry.node)))
  await writer.commit(newNode('n1'))
  await writer.commit({ reads: [], writes: [], entries: [note('refused')] })
  await eventually('both to be received', () => received.length === 2)
  assert.deepEqual(received, ['n1', 'refused'])
})

test('rows are published as they are in the store, and a row that is gone is left out', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicaSite(t)
  const [writer, reader] = await Promise.all([site.open(), site.openBehindProxy()])
  reader.proxy.blackhole()
  await writer.commit(newNode('n1'))
  await writer.commit({
    reads: [read('node', 'n1', 1)],
    writes: [
      putNode('n1', { counter: 9 }),
      {
        put: 'denial',
        value: { kind: 'epoch', node: 'n1', epoch: 1, atMs: 1, untilMs: 5, why: 'gone', reason: 'unspecified' },
      },
    ],
    entries: [note('n1'), note('n1')],
  })
  await site.connection.exec('DELETE FROM denial')
  reader.proxy.pass()
  await eventually('both to be told', () => reader.published.length === 2)
  assert.deepEqual(
    reader.published.map(({ writes }) => writes.map((write) => write.put === 'node' && write.value.counter)),
    [[9], [9]],
  )
  assert.deepEqual(
    reader.published.map(({ entries }) => entries.length),
    [1, 2],
  )
})
