// The server dies, ends connections or has no standby, and a replica stands still: what was acknowledged is there.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { withPeer } from '../peers/peer.ts'
import { startChild } from '../process/child.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { startPostgres, type PostgresServer } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withSeed } from '../process/with-seed.ts'
import { makeSigner, newNode, note, openPostgresStoreOn, putNode, read, signerOf } from '../store/harness.ts'
import { assertGapless, committed, readAll, replicated } from '../store/postgres-setup.ts'

const long = process.env['MUSTER_LONG'] === '1'

/** On a server of its own, which the test may ill-treat. */
const ownServer = async (t: TestContext) => {
  const server = await startPostgres(t)
  const { target, connect } = await server.database(t)
  const signer = makeSigner()
  const open = async (): Promise<Store> => {
    const store = await openPostgresStoreOn(target, signer)
    cleanup(t, () => store.close())
    return store
  }
  return { server, store: await open(), open, connect }
}

/** Commits without end until told to stop, and then what was acknowledged and what was not. */
const load = (t: TestContext, store: Store, lanes: number) => {
  const acknowledged: string[] = []
  const rejected = new Set<string>()
  let going = true
  const running = Array.from({ length: lanes }, async (_, lane) => {
    for (let at = 0; going; at++) {
      const id = `n${lane}-${at}`
      try {
        assert.notEqual(await store.commit(newNode(id)), 'lost-race')
        acknowledged.push(id)
      } catch (error) {
        assert(error instanceof StoreFault, String(error))
        rejected.add(id)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  })
  const end = async (): Promise<void> => {
    going = false
    await Promise.all(running)
  }
  cleanup(t, end)
  return {
    acknowledged: (): number => acknowledged.length,
    async end() {
      await end()
      return { acknowledged, rejected }
    },
  }
}

const assertKept = async (
  store: Store,
  { acknowledged, rejected }: { acknowledged: string[]; rejected: Set<string> },
) => {
  const entries = await readAll(store)
  assertGapless(entries)
  const nodes = entries.map(({ entry }) => entry.node ?? '')
  const kept = new Set(nodes)
  assert.equal(kept.size, nodes.length, 'nothing is there twice')
  for (const id of acknowledged) assert(kept.has(id), `${id} was acknowledged`)
  const known = new Set(acknowledged)
  for (const id of kept) assert(known.has(id) || rejected.has(id), `${id} came from nowhere`)
  assert.equal((await store.journal.verify()).kind, 'intact')
}

const moreThan = (count: number, since: number, of: { acknowledged(): number }): Promise<true> =>
  eventually('commits to be acknowledged', () => of.acknowledged() > since + count, { withinMs: 60_000 })

test('kill -9 of the server, again and again under load: every acknowledged commit is there, and writes resume', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { server, store } = await ownServer(t)
  const running = load(t, store, 10)
  await withSeed(async (random) => {
    for (let round = 0; round < (long ? 15 : 2); round++) {
      await moreThan(20 + random.unit() * 200, running.acknowledged(), running)
      await server.stop('crash')
      // What was just being born when the others were killed notices a moment later, and keeps the memory until then.
      await eventually('the server to start again', () => server.start().then(() => true), { withinMs: 30_000 })
    }
  })
  await moreThan(50, running.acknowledged(), running)
  await assertKept(store, await running.end())
})

test('connections ended by the server at any moment under load: nothing is lost, nothing is there twice', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { store, connect } = await ownServer(t)
  const connection = await connect()
  const running = load(t, store, 10)
  await withSeed(async (random) => {
    for (let round = 0; round < (long ? 200 : 15); round++) {
      await moreThan(5 + random.unit() * 40, running.acknowledged(), running)
      await connection.exec(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'muster write'`,
      )
    }
  })
  await assertKept(store, await running.end())
})

const standbys = async (server: PostgresServer, connection: PgConnection, names: string): Promise<void> => {
  await connection.exec(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
  await connection.exec('SELECT pg_reload_conf()')
  const shown = { name: 'shown', text: 'SHOW synchronous_standby_names' }
  await eventually('the server to heed it', async () => {
    const [row] = (await connection.run(shown)).rows
    return row?.['synchronous_standby_names'] === names && server.pid > 0
  })
}

const waitingForStandby = async (connection: PgConnection): Promise<readonly number[]> => {
  const { rows } = await connection.run({
    name: 'waiting-for-standby',
    text: `SELECT pid FROM pg_stat_activity WHERE application_name = 'muster write' AND wait_event = 'SyncRep'`,
  })
  return rows.map((row) => row['pid'] as number)
}

/**
 * The checkpointer tells commits to wait, and nothing shows whether it has read the setting yet: a commit that comes before that is
 * answered at once, and another is made. `ids`: of all of them, the one that waits last.
 */
const commitThatWaits = async (store: Store, connection: PgConnection) => {
  for (let at = 1; at <= 500; at++) {
    const outcome = { answered: false }
    const asked = store.commit(newNode(`n${at}`)).finally(() => (outcome.answered = true))
    const pids = await eventually('the commit to wait or to be answered', async () => {
      const waiting = await waitingForStandby(connection)
      return waiting.length > 0 ? waiting : outcome.answered && []
    })
    const ids = Array.from({ length: at }, (_, index) => `n${index + 1}`)
    if (pids.length > 0) return { asked, outcome, ids, pid: pids[0] as number }
  }
  throw new Error('no commit waits for the standby')
}

for (const [how, call] of [
  ['a wait for the standby that is cancelled', 'pg_cancel_backend'],
  ['a wait for the standby that is ended with its connection', 'pg_terminate_backend'],
] as const)
  test(`${how} acknowledges nothing: the commit is answered once it is replicated`, async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { server, store, connect } = await ownServer(t)
    const connection = await connect()
    await committed(store, newNode('before'))
    await standbys(server, connection, 'nobody')
    const { asked, outcome, ids, pid } = await commitThatWaits(store, connection)
    await connection.run({ name: 'end-wait', text: `SELECT ${call}($1::int)` }, [pid])
    await eventually('the look-up to wait for the standby as well', async () => {
      const pids = await waitingForStandby(connection)
      return pids.length > 0 && !pids.includes(pid)
    })
    const there = await connection.run({ name: 'there', text: `SELECT key FROM node WHERE key = $1` }, [
      ids.at(-1) ?? '',
    ])
    assert.equal(there.count, 1, 'it can be seen already')
    assert.equal(outcome.answered, false, 'and yet it is not acknowledged')
    await standbys(server, connection, '')
    assert.notEqual(await asked, 'lost-race')
    await assertKept(store, { acknowledged: ['before', ...ids], rejected: new Set() })
  })

test('a replica that stands still inside a transaction blocks others for a few seconds and loses what it was about to write', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const pair = generateKeyPairSync('ed25519')
  const keyFile = path.join(tempFolder(t), 'key.pem')
  fs.writeFileSync(keyFile, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const { open, target, connection, sql } = await replicated(t, signerOf(pair.privateKey, pair.publicKey))
  const store = await open()
  await committed(store, newNode('hot'))
  const program = path.join(import.meta.dirname, 'postgres-committer.ts')
  const child = startChild(t, process.execPath, [program, JSON.stringify(target), keyFile], {})
  const patience = { withinMs: 30_000 }
  const printed = (what: RegExp) =>
    eventually(`the child to print ${what}`, () => what.exec(child.stdout())?.[1], patience)
  const replica = await printed(/replica (\d+)/)
  // Its next commit is held up at the very end, with the row it writes already locked.
  await connection.exec(`BEGIN; SELECT FROM chain WHERE writer = ${replica} FOR UPDATE`)
  await committed(store, newNode('go'))
  await eventually('the commit of the child to be held up', async () => {
    const [row] = await sql(`SELECT count(*) AS waiting FROM pg_stat_activity WHERE application_name = 'muster write'
      AND datname = current_database() AND wait_event_type = 'Lock'`)
    return row?.['waiting'] === 1
  })
  child.signal('SIGSTOP')
  await connection.exec('COMMIT')
  const [startMs, fairMs] = [performance.now(), fairStopwatch()]
  const outcome = await store.commit({
    reads: [read('node', 'hot', 1)],
    writes: [putNode('hot', { epoch: 2 })],
    entries: [note('hot')],
  })
  const tookMs = performance.now() - startMs
  assert.ok(tookMs > 3000 && fairMs() < 8000, `it took ${Math.round(tookMs)} ms`)
  child.signal('SIGCONT')
  assert.deepEqual([outcome === 'lost-race', await printed(/outcome (.*)/)], [false, 'lost-race'])
  assert.equal((await store.get('node', 'hot'))?.value.epoch, 2)
  assert.equal((await store.journal.verify()).kind, 'intact')
})
