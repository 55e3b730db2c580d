// Commits of several replicas on one PostgreSQL: what one store keeps by running in one turn, these keep by locks,
// constraints and counts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Alert } from '#domain/alerts/alert.ts'
import type { Change, Read, Write } from '#domain/core/change.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { withSeed } from '../process/with-seed.ts'
import {
  change,
  makeSigner,
  newNode,
  note,
  openStore,
  putNode,
  read,
  someCertificate,
  someToken,
  steppedTimers,
  workplace,
} from './harness.ts'
import { assertGapless, committed, readAll, replicated } from './postgres-setup.ts'

const long = process.env['MUSTER_LONG'] === '1'
const ban = (spki: string): Write => ({ put: 'key-ban', value: { spki, why: 'leaked', atMs: 1 } })

describe('replicas on one database', () => {
  test('any concurrent changes of three replicas leave what some order of them would have left', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    const stores = [await open(), await open(), await open()]
    const rounds = long ? 400 : 25
    await withSeed(async (random) => {
      const any = (count: number): number => Math.floor(random.unit() * count)
      const work = async (store: Store, replica: number): Promise<number> => {
        let won = 0
        for (let round = 0; round < rounds; round++) {
          const batch = Array.from({ length: 6 }, async (_, lane) => {
            const ids = [...new Set([any(8), any(8)])].map((id) => `n${id}`)
            const rows = await Promise.all(ids.map((id) => store.get('node', id)))
            const mac = `02:00:00:00:00:0${any(9)}`
            const outcome = await store.commit({
              reads: ids.map((id, at) => read('node', id, rows[at]?.version ?? 0)),
              writes: ids.map((id, at) =>
                putNode(id, {
                  epoch: (rows[at]?.value.epoch ?? 0) + 1,
                  hardware: { macs: at === 0 ? [mac] : [], bmcSerial: null },
                }),
              ),
              entries: [note(ids[0]), note(`by-${replica}-${round}-${lane}`)],
            })
            return outcome === 'lost-race' ? 0 : ids.length
          })
          won += (await Promise.all(batch)).reduce((sum, count) => sum + count, 0)
        }
        return won
      }
      const won = (await Promise.all(stores.map(work))).reduce((sum, count) => sum + count, 0)
      const nodes = await sql('SELECT key, version, doc FROM node')
      const docs = nodes.map(({ doc }) => JSON.parse(doc as string) as { epoch: number; hardware: { macs: string[] } })
      assert.equal(
        nodes.reduce((sum, { version }) => sum + (version as number), 0),
        won,
        'every write that was acknowledged counted once, and no other did',
      )
      nodes.forEach(({ version }, at) =>
        assert.equal(docs[at]?.epoch, version, 'nobody wrote over what it had not read'),
      )
      const addresses = nodes.flatMap(({ key }, at) =>
        docs[at]?.hardware.macs.map((mac) => `mac:${mac} ${String(key)}`),
      )
      const held = (await sql('SELECT value, node FROM hardware')).map(
        (row) => `${String(row['value'])} ${String(row['node'])}`,
      )
      assert.deepEqual(held.toSorted(), addresses.toSorted())
    })
    assertGapless(await readAll(stores[0] as Store))
    const verified = await (stores[1] as Store).journal.verify()
    assert.equal(verified.kind, 'intact')
    assert.equal(verified.kind === 'intact' && verified.heads.length, 3, 'every replica has a chain of its own')
  })

  test('opposite orders of rows cause no deadlock', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    const stores = [await open(), await open()] as const
    const ids = Array.from({ length: 20 }, (_, at) => `n${at}`)
    for (const id of ids) await committed(stores[0], newNode(id))
    const before = await deadlocks(sql)
    const touch = async (store: Store, order: readonly string[]): Promise<void> => {
      for (let round = 0; round < 20; round++) {
        const rows = await Promise.all(order.map((id) => store.get('node', id)))
        const reads = order.map((id, at) => read('node', id, rows[at]?.version ?? 0))
        await store.commit({ reads, writes: order.map((id) => putNode(id)), entries: [note()] })
      }
    }
    await Promise.all([touch(stores[0], ids), touch(stores[1], ids.toReversed())])
    assert.equal(await deadlocks(sql), before)
  })

  test('never are a ban and an enrollment that relied on its absence both committed, ban first', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const [one, other] = [await open(), await open()]
    for (let round = 0; round < (long ? 300 : 40); round++) {
      const spki = `k${round}`
      const enrollment = change([read('key-ban', spki, 0), read('node', `n${round}`, 0)], [putNode(`n${round}`)])
      const [banned, ...enrolled] = await Promise.all([
        one.commit(change([read('key-ban', spki, 0)], [ban(spki)])),
        other.commit(enrollment),
        one.commit(enrollment),
      ])
      assert.notEqual(banned, 'lost-race')
      assert(enrolled.filter((outcome) => outcome !== 'lost-race').length <= 1)
      assert.equal(await other.commit(change([read('key-ban', spki, 0)], [])), 'lost-race')
    }
    // By the journal of the winner: an enrollment was in its chain before the ban could be, or it is not there.
    assert.equal((await one.journal.verify()).kind, 'intact')
  })

  test('a commit that relies on an absent row waits for the one that inserts it, whichever row it is', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const [one, other] = [await open(), await open()]
    await committed(one, newNode('there'))
    await committed(other, newNode('there too'))
    const [place] = await sql(`SELECT chain FROM chain WHERE writer = ${one.replicas.self}`)
    const cases: readonly [Read, Write][] = [
      [read('key-ban', 'k', 0), ban('k')],
      [read('node', 'n', 0), putNode('n')],
      [read('token', 'hash-of-t', 0), { put: 'token', value: someToken('t') }],
      [read('certificate', 'ca/a1', 0), { put: 'certificate', value: someCertificate('a1') }],
    ]
    for (const [relied, write] of cases) {
      // The one who inserts is held up at the very end of its transaction.
      await connection.exec(`BEGIN; SELECT FROM chain WHERE chain = '${String(place?.['chain'])}' FOR UPDATE`)
      const inserting = one.commit(change([relied], [write]))
      await eventually('the insertion to be held up', async () => (await waiting(sql)) === 1)
      const relying = other.commit(change([relied], []))
      await eventually('the other to wait for it', async () => (await waiting(sql)) === 2)
      await connection.exec('COMMIT')
      assert.notEqual(await inserting, 'lost-race')
      assert.equal(await relying, 'lost-race', relied.row)
    }
  })

  test('a commit that changes a row waits for the one that has relied on it, though that writes another', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const [one, other] = [await open(), await open()]
    await committed(one, newNode('n1'))
    await committed(other, newNode('n2'))
    const [place] = await sql(`SELECT chain FROM chain WHERE writer = ${one.replicas.self}`)
    await connection.exec(`BEGIN; SELECT FROM chain WHERE chain = '${String(place?.['chain'])}' FOR UPDATE`)
    const relying = one.commit(change([read('node', 'n1', 1), read('node', 'n3', 0)], [putNode('n3')]))
    await eventually('the one who relies on it to be held up', async () => (await waiting(sql)) === 1)
    const changing = other.commit(change([read('node', 'n1', 1)], [putNode('n1')]))
    await eventually('the one who changes it to wait', async () => (await waiting(sql)) === 2)
    await connection.exec('COMMIT')
    assert.notEqual(await relying, 'lost-race')
    assert.notEqual(await changing, 'lost-race')
  })

  test('the fencing token of a former leader is refused, and so is everything without a lease', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    // It renews its lease when told to: otherwise it would soon have another.
    const { timers, tick } = steppedTimers()
    const store = await open({ timers })
    tick()
    const fencingToken = await eventually('the replica to lead', () => store.replicas.leadership())
    assert.notEqual(await store.commit(newNode('n1'), fencingToken), 'lost-race')
    await sql('UPDATE leadership SET number = number + 1, replica = NULL')
    const [led, other] = await Promise.allSettled([
      store.commit(newNode('n2'), fencingToken),
      store.commit(newNode('n3')),
    ])
    assert(led.status === 'rejected' && led.reason instanceof StaleReplica)
    assert(other.status === 'fulfilled' && other.value !== 'lost-race', 'its neighbour needs no fencing token')
    await sql("UPDATE replica SET expires_at = now() - interval '1 second'")
    await assert.rejects(store.commit(newNode('n4')), StaleReplica)
    assert.equal(await store.get('node', 'n2'), null)
    assert.equal(await store.get('node', 'n4'), null)
  })

  test('a lease that ends while a commit is on its way takes that along', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const { timers } = steppedTimers()
    const store = await open({ timers })
    await committed(store, newNode('n1'))
    await connection.exec("BEGIN; SELECT FROM node WHERE key = 'n1' FOR UPDATE")
    const late = assert.rejects(store.commit(change([read('node', 'n1', 1)], [putNode('n1')])), StaleReplica)
    await eventually('it to be held up', async () => (await waiting(sql)) === 1)
    await connection.exec("UPDATE replica SET expires_at = clock_timestamp() - interval '1 second'; COMMIT")
    await late
    assert.equal((await store.get('node', 'n1'))?.version, 1)
  })

  test('while a commit of a leader is under way no other replica takes its place', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const store = await open()
    const fencingToken = await eventually('the replica to lead', () => store.replicas.leadership())
    await committed(store, newNode('n1'))
    await connection.exec("BEGIN; SELECT FROM node WHERE key = 'n1' FOR UPDATE; SET LOCAL lock_timeout = '50ms'")
    const sweeping = store.commit(change([read('node', 'n1', 1)], [putNode('n1')]), fencingToken)
    await eventually('the sweep to be held up', async () => (await waiting(sql)) === 1)
    await connection.exec('SAVEPOINT before')
    await assert.rejects(connection.exec('UPDATE leadership SET number = number + 1, replica = NULL'), /lock timeout/)
    await connection.exec('ROLLBACK TO before; COMMIT')
    assert.notEqual(await sweeping, 'lost-race')
    await connection.exec('UPDATE leadership SET number = number + 1, replica = NULL')
  })

  test('a commit that relies on a node without a holder loses to the channel that was opened meanwhile', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const [one, other] = [await open(), await open()]
    await committed(one, newNode('n1'))
    const lapse = (version: number): Change => ({
      ...change([read('node', 'n1', version)], [putNode('n1', { epoch: version })]),
      unheld: 'n1',
    })
    assert.notEqual(await one.commit(lapse(1)), 'lost-race')
    assert.equal(await other.replicas.holds.take('n1', { number: 1, instance: null }, null), 'held')
    assert.equal(await one.commit(lapse(2)), 'lost-race')
    other.replicas.holds.release('n1', 1)
    await eventually('the channel to be given up', async () => (await one.replicas.holds.of('n1')) === null)
    assert.notEqual(await one.commit(lapse(2)), 'lost-race')
  })
})

const deadlocks = async (sql: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>) => {
  const [row] = await sql('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
  return row?.['deadlocks']
}

const waiting = async (sql: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>) => {
  const [row] = await sql(`SELECT count(*) AS waiting FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'muster write' AND wait_event_type = 'Lock'`)
  return row?.['waiting']
}

describe('chains', () => {
  test('a replica that starts goes on with the chain of one that closed', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const first = await open()
    const { entries } = await committed(first, newNode('n1'))
    await first.close()
    const second = await open()
    const next = await committed(second, newNode('n2'))
    assert.deepEqual(
      [...entries, ...next.entries].map(({ entry }) => [entry.chain, entry.sequence]),
      [1, 2].map((sequence) => [entries[0]?.entry.chain, sequence]),
    )
  })

  test('the chain of a replica that is gone is taken over once its lease is, and by one of two', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    const [gone, one, other] = [await open({ timers: steppedTimers().timers }), await open(), await open()]
    await committed(gone, newNode('n0'))
    const [chain] = await gone.journal.heads()
    await sql(`UPDATE replica SET expires_at = now() - interval '1 second' WHERE number = ${gone.replicas.self}`)
    const [first, second] = await Promise.all([committed(one, newNode('n1')), committed(other, newNode('n2'))])
    const places = [first, second].map(({ entries }) => entries[0]?.entry)
    assert.deepEqual(places.map((entry) => entry?.chain === chain?.chain).toSorted(), [false, true])
    assert.equal(places.find((entry) => entry?.chain === chain?.chain)?.sequence, 2)
    await assert.rejects(gone.commit(newNode('n3')), StaleReplica)
    assert.equal((await one.journal.verify()).kind, 'intact')
  })

  test('a chain whose late writer may still be at it is passed over without a wait', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const { timers } = steppedTimers()
    await committed(await open({ timers }), newNode('n1'))
    await sql("UPDATE replica SET expires_at = clock_timestamp() - interval '1 second'")
    await connection.exec('BEGIN; SELECT FROM chain FOR UPDATE')
    const entries = (await committed(await open(), newNode('n2'))).entries
    await connection.exec('COMMIT')
    const [late] = await sql("SELECT chain FROM journal WHERE node = 'n1'")
    assert.notEqual(entries[0]?.entry.chain, late?.['chain'])
  })

  test('the rows a commit wrote are named beside its first entry, for the other replicas', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    const store = await open()
    const writes: Write[] = [putNode('n1'), { put: 'certificate', value: someCertificate('a1') }]
    await committed(store, { reads: [read('node', 'n1', 0)], writes, entries: [note('n1'), note()] })
    const touched = (await sql('SELECT touched FROM journal ORDER BY sequence')).map((row) => row['touched'])
    assert.deepEqual(touched, ['[["node","n1"],["certificate","ca/a1"]]', null])
  })
})

test('whatever is unique, and whatever may come twice: both stores answer alike', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { open } = await replicated(t)
  const { folder, atEnd } = workplace(t)
  const lite = await openStore(folder, makeSigner())
  atEnd(() => lite.close())
  const postgres = await open()
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(draft, { minLength: 1, maxLength: 5 }), { maxLength: 5 }), async (batches) => {
      run++
      for (const batch of batches) {
        const wanted = await Promise.all(batch.map((each) => changeOf(lite, run, each)))
        const answers = await Promise.all(
          [lite, postgres].map((store) => Promise.all(wanted.map((one) => store.commit(one)))),
        )
        const published = answers.map((outcomes) =>
          outcomes.map((outcome) => (outcome === 'lost-race' ? outcome : outcome.writes)),
        )
        assert.deepEqual(published[1], published[0])
      }
      const [inLite, inPostgres] = await Promise.all([lite, postgres].map((store) => rowsOf(store, run)))
      assert.deepEqual(inPostgres, inLite)
    }),
    { numRuns: long ? 1500 : 100 },
  )
  const [one, other] = await Promise.all([lite, postgres].map((store) => store.journal.verify()))
  assert.deepEqual([other?.kind, other?.entries], ['intact', one?.entries])
})

type Draft = { readonly puts: readonly Put[]; readonly stale: number }
type Put = {
  readonly kind: 'operator-key' | 'alert' | 'token' | 'denial' | 'key-ban' | 'certificate'
  key: number
  value: number
  live: boolean
}

const put: fc.Arbitrary<Put> = fc.record({
  kind: fc.constantFrom('operator-key', 'operator-key', 'alert', 'alert', 'token', 'denial', 'key-ban', 'certificate'),
  key: fc.nat({ max: 2 }),
  value: fc.nat({ max: 2 }),
  live: fc.boolean(),
})
const draft: fc.Arbitrary<Draft> = fc.record({
  puts: fc.uniqueArray(put, { selector: ({ kind, key }) => `${kind} ${key}`, minLength: 1, maxLength: 3 }),
  stale: fc.constantFrom(0, 0, 0, 1),
})

const writeOf = (run: number, { kind, key, value, live }: Put): { readonly key: string; readonly write: Write } => {
  const name = `${run}-${key}`
  switch (kind) {
    case 'operator-key': {
      const made = { id: `${run}-id-${live ? key : value}`, hash: name, name: `${run}-name-${value}`, role: 'admin' }
      const times = { revokedAtMs: live ? null : 1, expiresAtMs: null }
      return { key: name, write: { put: kind, value: { ...made, ...times } as OperatorKey } }
    }
    case 'alert': {
      const about = { kind: 'cert_expired', subject: name, node: null, severity: 'critical', sinceMs: 1, reason: 'x' }
      const state = live ? { kind: 'open' } : { kind: 'resolved', atMs: 1 }
      return {
        key: `cert_expired/${name}`,
        write: { put: kind, value: { ...about, id: `${run}-${value}`, state } as Alert },
      }
    }
    case 'token':
      return { key: name, write: { put: kind, value: someToken(`${run}-${live ? key : value}`, { hash: name }) } }
    case 'denial': {
      const denial = {
        kind: 'epoch',
        node: name,
        epoch: 1,
        atMs: 1,
        untilMs: value,
        why: 'x',
        reason: 'unspecified',
      } as const
      return { key: `epoch/1/${name}`, write: { put: kind, value: denial } }
    }
    case 'key-ban':
      return { key: name, write: { put: kind, value: { spki: name, why: String(value), atMs: 1 } } }
    case 'certificate':
      return { key: `ca/${name}`, write: { put: kind, value: someCertificate(name, { spki: String(value) }) } }
  }
}

/** Reads what it has to, as it stands in one of the stores, or as it might stand a moment later. */
const changeOf = async (store: Store, run: number, { puts, stale }: Draft): Promise<Change> => {
  const writes = puts.map((each) => writeOf(run, each))
  const reads = await Promise.all(
    writes.map(async ({ key, write }) =>
      read(write.put, key, ((await store.get(write.put, key))?.version ?? 0) + stale),
    ),
  )
  // A ban and a certificate may be written unread.
  const named = reads.filter(
    (_, at) => !(puts[at]?.live === true && ['key-ban', 'certificate'].includes(puts[at]?.kind)),
  )
  return {
    reads: named.filter(({ row }) => row !== 'denial'),
    writes: writes.map(({ write }) => write),
    entries: [note()],
  }
}

const rowsOf = (store: Store, run: number): Promise<readonly unknown[]> =>
  Promise.all(
    (['operator-key', 'alert', 'token', 'denial', 'key-ban', 'certificate'] as const).flatMap((kind) =>
      [0, 1, 2].map((key) => {
        const place = writeOf(run, { kind, key, value: 0, live: true })
        return store.get(kind, place.key)
      }),
    ),
  )
