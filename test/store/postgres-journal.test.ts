// The journal of several replicas: one story out of several chains, of which nothing is missed and nothing told twice.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { chainedHash } from '#plane/store/journal/journal-chain.ts'
import { readCursor } from '#plane/store/journal/journal-cursor.ts'
import { CursorUnknown } from '#plane/store/contract/store-errors.ts'
import type { Cursor, Store, StoredEntry, Verification } from '#plane/store/contract/store.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { newNode, note } from './harness.ts'
import { assertGapless, committed, everything, readAll, replicated, type Replicated } from './postgres-setup.ts'

const nodesOf = (entries: readonly StoredEntry[]): readonly (string | null)[] => entries.map(({ entry }) => entry.node)
const operationsOf = (entries: readonly StoredEntry[]): readonly string[] => entries.map(({ entry }) => entry.operation)

describe('reading several chains', () => {
  test('entries of all replicas come by their time, each once, a page at a time', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const stores = [await open(), await open(), await open()]
    const ids = Array.from({ length: 30 }, (_, at) => `n${at}`)
    for (const [at, id] of ids.entries()) {
      await committed(stores[at % 3] as Store, newNode(id))
      // Entries of one millisecond have no order among replicas.
      const atMs = Date.now()
      while (Date.now() === atMs) await new Promise((resolve) => setImmediate(resolve))
    }
    const all = await readAll(stores[0] as Store, { limit: 7 })
    assert.deepEqual(nodesOf(all), ids)
    assertGapless(all)
    assert.equal(new Set(all.map(({ entry }) => entry.chain)).size, 3)
    assert.deepEqual(nodesOf(await readAll(stores[1] as Store, { limit: 7, node: 'n11' })), ['n11'])
    assert.deepEqual(nodesOf(await readAll(stores[1] as Store, { limit: 7, type: 'node.registered' })), ids)
    const types = ['host.enrolled', 'node.registered', 'node.lapsed'] as const
    assert.deepEqual(nodesOf(await readAll(stores[2] as Store, { limit: 4, type: types })), ids)
  })

  test('a reader that follows while three replicas write misses nothing and gets nothing twice', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const stores = [await open(), await open(), await open()]
    const follower = await open()
    let writing = true
    const follow = async (query: Partial<typeof everything>, from: Cursor | null): Promise<readonly StoredEntry[]> => {
      const followed: StoredEntry[] = []
      let after = from
      for (let last = false; !last;) {
        // What was written before the last look is there to be read.
        last = !writing
        for (let page = await next(); page.length > 0; page = await next()) {
          followed.push(...page)
          after = page.at(-1)?.cursor ?? null
        }
      }
      return followed
      function next() {
        return follower.journal.read({ ...everything, ...query, after, limit: 5 })
      }
    }
    await committed(stores[0] as Store, newNode('first'))
    const [first] = await follower.journal.read({ ...everything, last: 1 })
    const following = Promise.all([
      follow({}, null),
      follow({ type: 'host.enrolled' }, null),
      follow({}, first?.cursor ?? null),
    ])
    await Promise.all(
      stores.map(async (store, replica) => {
        for (let at = 0; at < 25; at++)
          await Promise.all(
            [0, 1].map((lane) => {
              const id = `n${replica}-${at}-${lane}`
              return store.commit({ ...newNode(id), entries: [note(id), note(id, 'host.enrolled')] })
            }),
          )
      }),
    )
    writing = false
    const [everyone, enrolled, behindFirst] = await following
    assert.equal(everyone.length, 301)
    assertGapless(everyone)
    assert.deepEqual(
      operationsOf(enrolled).toSorted(),
      operationsOf(everyone.filter(({ entry }) => entry.type === 'host.enrolled')).toSorted(),
    )
    assert.deepEqual(operationsOf(behindFirst).toSorted(), operationsOf(everyone.slice(1)).toSorted())
  })

  test('a late commit of a slow replica is still published, though it is older than what was published before', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, connection, sql } = await replicated(t)
    const [slow, quick] = [await open(), await open()]
    await committed(slow, newNode('n1'))
    await committed(quick, newNode('n2'))
    const [place] = await sql(`SELECT chain FROM chain WHERE writer = ${slow.replicas.self}`)
    await connection.exec(`BEGIN; SELECT FROM chain WHERE chain = '${String(place?.['chain'])}' FOR UPDATE`)
    const late = slow.commit(newNode('late'))
    await eventually('its entry to be written, and not committed', async () => {
      const [row] = await sql(`SELECT count(*) AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'muster write' AND wait_event_type = 'Lock'`)
      return row?.['waiting'] === 1
    })
    await committed(quick, newNode('n3'))
    const before = await readAll(quick)
    assert.deepEqual(nodesOf(before), ['n1', 'n2', 'n3'])
    await connection.exec('COMMIT')
    assert.notEqual(await late, 'lost-race')
    const after = await readAll(quick, { after: before.at(-1)?.cursor ?? null })
    assert.deepEqual(nodesOf(after), ['late'])
    assert((operationsOf(after)[0] ?? '') < (operationsOf(before).at(-1) ?? ''), 'it was made before what was told')
    assert.deepEqual(nodesOf(await readAll(quick)), ['n1', 'n2', 'late', 'n3'])
  })

  test('the newest of all chains are the newest, and following goes on exactly behind them', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const stores = [await open(), await open(), await open()]
    const write = async (from: number, to: number): Promise<void> => {
      for (let at = from; at < to; at++) await committed(stores[at % 2] as Store, newNode(`n${at}`))
    }
    await committed(stores[2] as Store, newNode('quiet'))
    await write(0, 10)
    const last = await (stores[0] as Store).journal.read({ ...everything, last: 4 })
    assert.deepEqual(nodesOf(last), ['n6', 'n7', 'n8', 'n9'])
    await write(10, 13)
    const behind = async (entry: StoredEntry | undefined) =>
      nodesOf(await readAll(stores[1] as Store, { after: entry?.cursor ?? null, limit: 2 }))
    assert.deepEqual(await behind(last.at(-1)), ['n10', 'n11', 'n12'])
    assert.deepEqual(await behind(last[0]), ['n7', 'n8', 'n9', 'n10', 'n11', 'n12'], 'from any entry of the page')
    const [ofNode] = await (stores[0] as Store).journal.read({ ...everything, last: 1, node: 'quiet' })
    assert.deepEqual(await behind(ofNode), [
      'n0',
      'n1',
      'n2',
      'n3',
      'n4',
      'n5',
      'n6',
      'n7',
      'n8',
      'n9',
      'n10',
      'n11',
      'n12',
    ])
  })

  test('the cursor of a commit has the other chains where that commit saw them', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const [one, other] = [await open(), await open()]
    await committed(one, newNode('n1'))
    await committed(one, newNode('n2'))
    const [entry] = (await committed(other, newNode('n3'))).entries
    await committed(one, newNode('n4'))
    assert.deepEqual([...(readCursor(entry?.cursor ?? '')?.values() ?? [])].toSorted(), [1, 2])
    assert.deepEqual(nodesOf(await readAll(one, { after: entry?.cursor ?? null })), ['n4'])
  })

  test('a cursor of another journal is not taken for one of this', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open } = await replicated(t)
    const store = await open()
    await committed(store, newNode('n1'))
    const after = Buffer.from('01JSOMEOTHERCHAIN:5').toString('base64url') as Cursor
    await assert.rejects(store.journal.read({ ...everything, after }), CursorUnknown)
    await assert.rejects(store.journal.read({ ...everything, after: 'nonsense' as Cursor }), CursorUnknown)
  })

  test('the entries of one type about one node are found without walking past those of all others', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { open, sql } = await replicated(t)
    const stores = [await open(), await open()]
    await committed(stores[0] as Store, newNode('quiet'))
    await committed(stores[1] as Store, { ...newNode('quiet2'), entries: [note('quiet')] })
    const crowd = Array.from({ length: 10_000 }, (_, at) => note(`n${at}`))
    for (let from = 0; from < crowd.length; from += 500)
      await committed(stores[(from / 500) % 2] as Store, {
        reads: [],
        writes: [],
        entries: [note(), ...crowd.slice(from, from + 500)],
      })
    await sql('ANALYZE journal')
    const query = { ...everything, last: 50, limit: 50 }
    // The quickest of many: what else the machine does slows some of them down, and not all.
    const took = async (more: Partial<typeof everything>, count: number): Promise<number> => {
      let quickestMs = Infinity
      for (let round = 0; round < 20; round++) {
        const startMs = performance.now()
        assert.equal((await (stores[0] as Store).journal.read({ ...query, ...more })).length, count)
        quickestMs = Math.min(quickestMs, performance.now() - startMs)
      }
      return quickestMs
    }
    await took({}, 50)
    const newestMs = await took({}, 50)
    // Measured: less; a walk through the journal takes tens of times as long.
    assert((await took({ node: 'quiet', type: 'node.registered' }, 2)) < 3 * newestMs + 3)
    assert((await took({ type: ['host.revoked', 'alert.raised'] }, 0)) < 3 * newestMs + 3)
  })
})

describe('verifying several chains', () => {
  /** Two chains of 250 entries, so that each is more than a page; the first of them belongs to `one`. */
  const written = async (t: TestContext): Promise<Replicated & { one: Store; other: Store; chains: string[] }> => {
    const setup = await replicated(t)
    const [one, other] = [await setup.open(), await setup.open()]
    const entries = Array.from({ length: 50 }, (_, at) => note(`n${at}`))
    for (const store of [one, other])
      for (let group = 0; group < 5; group++)
        await committed(store, { reads: [], writes: [], entries: [note(), ...entries.slice(1)] })
    const chains = await Promise.all(
      [one, other].map(async (store) => {
        const [row] = await setup.sql(`SELECT chain FROM chain WHERE writer = ${store.replicas.self}`)
        return String(row?.['chain'])
      }),
    )
    return { ...setup, one, other, chains }
  }

  const broken = (verified: Verification, chain: string | undefined, from: number, to: number, why: RegExp): void => {
    assert(verified.kind === 'broken', 'the tampering was not noticed')
    assert.deepEqual([verified.chain, verified.from, verified.to], [chain, from, to], verified.why)
    assert.match(verified.why, why)
  }

  test('untouched they are intact, each with its signed head, for every caller', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other, chains } = await written(t)
    for (const store of [one, other]) {
      const verified = await store.journal.verify()
      assert(verified.kind === 'intact')
      assert.equal(verified.entries, 500)
      assert.deepEqual(
        verified.heads.map(({ chain, sequence }) => [chain, sequence]),
        chains.toSorted().map((chain) => [chain, 250]),
      )
      const [head] = verified.heads
      assert.equal(await store.journal.hashAt(head?.chain ?? '', 250), head?.hash)
      assert.equal(await store.journal.hashAt(head?.chain ?? '', 251), null)
    }
  })

  const tampered = (
    name: string,
    tamper: (chain: string) => string,
    expected: [from: number, to: number, why: RegExp],
  ): void =>
    void test(name, async (t) => {
      if (withPeer(t, 'postgres') === null) return
      const { other, chains, connection } = await written(t)
      const [chain = ''] = chains
      await connection.exec(tamper(chain))
      broken(await other.journal.verify(), chain, ...expected)
    })

  tampered(
    'an altered entry is named with its chain',
    (chain) => `UPDATE journal SET bytes = replace(bytes, 'system:test', 'system:evil')
      WHERE chain = '${chain}' AND sequence = 207`,
    [207, 207, /entry 207 does not match its hash/],
  )
  tampered(
    'an entry deleted in the middle',
    (chain) => `DELETE FROM journal WHERE chain = '${chain}' AND sequence BETWEEN 8 AND 9`,
    [8, 9, /entries 8 to 9 are missing/],
  )
  tampered(
    'the end cut off at a signed head',
    (chain) => `DELETE FROM journal WHERE chain = '${chain}' AND sequence > 200`,
    [201, 250, /entries 201 to 250 are missing/],
  )
  tampered(
    'the end cut off at a signed head, and the row of the chain along with it: a replica knows what it has seen',
    (chain) => `DELETE FROM journal WHERE chain = '${chain}' AND sequence > 200;
      UPDATE chain SET sequence = 200, hash = (SELECT hash FROM journal WHERE chain = '${chain}' AND sequence = 200)
      WHERE chain = '${chain}'`,
    [201, 250, /entries 201 to 250 are missing/],
  )
  tampered(
    'entries put behind the last one',
    (chain) => `INSERT INTO journal (chain, sequence, operation, bytes, hash, type)
      VALUES ('${chain}', 251, 'x', '{}', '\\x00', 'refused')`,
    [251, 251, /not written by this plane/],
  )
  tampered('a chain without entries', (chain) => `DELETE FROM journal WHERE chain = '${chain}'`, [
    1,
    250,
    /entries 1 to 250 are missing/,
  ])
  tampered('a chain without the record of where it begins', (chain) => `DELETE FROM chain WHERE chain = '${chain}'`, [
    1,
    1,
    /record of where the journal begins is missing/,
  ])
  tampered(
    'a chain that is gone altogether',
    (chain) => `DELETE FROM chain WHERE chain = '${chain}'; DELETE FROM journal WHERE chain = '${chain}'`,
    [1, 250, /a whole chain is missing/],
  )
  tampered(
    'another end of the chain in its row',
    (chain) => `UPDATE chain SET hash = '\\x00' WHERE chain = '${chain}'`,
    [250, 250, /where the chain ends was altered/],
  )
  tampered(
    'the beginning said to be that of another domain',
    (chain) => `UPDATE chain SET domain = 'evil.example' WHERE chain = '${chain}'`,
    [1, 1, /was altered/],
  )
  tampered(
    'an entry filed under another node, so that a filter does not find it',
    (chain) => `UPDATE journal SET node = 'other' WHERE chain = '${chain}' AND sequence = 3`,
    [3, 3, /filed under another node/],
  )

  test('a replica that takes over a chain with a forged end leaves a scar: its signature blesses nothing', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other, chains, open, connection, sql } = await written(t)
    const [chain = ''] = chains
    await Promise.all([one.close(), other.close()])
    const [row] = await sql(`SELECT a.hash AS before, b.bytes FROM journal a JOIN journal b ON b.chain = a.chain
      WHERE a.chain = '${chain}' AND a.sequence = 249 AND b.sequence = 250`)
    const bytes = String(row?.['bytes']).replace('system:test', 'system:evil')
    const hash = Buffer.from(chainedHash(row?.['before'] as Uint8Array, bytes))
    await connection.exec(`UPDATE journal SET bytes = '${bytes}', hash = '\\x${hash.toString('hex')}'
        WHERE chain = '${chain}' AND sequence = 250;
      UPDATE chain SET hash = '\\x${hash.toString('hex')}' WHERE chain = '${chain}'`)
    const stores = [await open(), await open()]
    for (const [at, store] of stores.entries()) await committed(store, newNode(`later-${at}`))
    broken(await (stores[0] as Store).journal.verify(), chain, 201, 250, /signed head at entry 250 does not fit/)
    await connection.exec(
      `UPDATE journal SET signature = NULL, key_id = NULL WHERE chain = '${chain}' AND sequence = 250`,
    )
    broken(await (stores[0] as Store).journal.verify(), chain, 201, 250, /no signed head covers the entries behind 200/)
  })

  test('what is written while it is verified is no trouble', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other } = await written(t)
    let verifying = true
    const writing = [one, other].map(async (store, replica) => {
      for (let at = 0; verifying; at++) await committed(store, newNode(`w${replica}-${at}`))
    })
    for (let round = 0; round < 5; round++) assert.equal((await one.journal.verify()).kind, 'intact')
    verifying = false
    await Promise.all(writing)
  })
})
