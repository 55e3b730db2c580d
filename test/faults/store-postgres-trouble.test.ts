// R4: what a database in trouble is called, and that /readyz says so.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPgHealth } from '#plane/store/postgres/health.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { startPlane } from '../process/start-plane.ts'

const cancelCommits = {
  name: '',
  text: `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
  WHERE application_name LIKE 'muster%' AND wait_event_type = 'Lock' AND datname = current_database()`,
}

test('R4: a cancelled statement is 503 UNAVAILABLE and not DISK_TROUBLE; while a table is locked /readyz says so, and is well afterwards', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const plane = await startPlane(t, { env: { MUSTER_STORE: 'postgres', ...database.env } })
  const connection = await database.connect()
  await connection.exec('BEGIN')
  // It can be read: a replica that cannot read it for ten seconds is behind, and says that instead.
  await connection.exec('LOCK TABLE journal IN EXCLUSIVE MODE')
  const create = plane.api('POST', '/v1/tokens', { node: 'gpu-001' })
  const other = await database.connect()
  await eventually('the commit to wait', async () => (await other.run(cancelCommits)).count > 0, { everyMs: 50 })
  const cancelled = await create
  assert.deepEqual([cancelled.status, cancelled.body.code], [503, 'UNAVAILABLE'], JSON.stringify(cancelled.body))
  assert.ok(Number(cancelled.headers['retry-after']) > 0)

  const unready = await eventually(
    '/readyz to say so',
    async () => {
      const readiness = await plane.api('GET', '/readyz')
      return readiness.status === 503 && readiness
    },
    { withinMs: 15_000, everyMs: 100 },
  )
  assert.match(unready.body.reasons.join('\n'), /the store cannot be written to/)

  await connection.exec('ROLLBACK')
  await eventually('the plane to be ready', async () => (await plane.api('GET', '/readyz')).status === 200, {
    withinMs: 15_000,
    everyMs: 100,
  })
  assert.equal((await plane.api('POST', '/v1/tokens', { node: 'gpu-001' })).status, 201)

  if (process.env['MUSTER_LONG'] === undefined) return
  // Nobody calls: the plane finds out by itself.
  await connection.exec('BEGIN')
  await connection.exec('LOCK TABLE node')
  await eventually('/readyz to say so', async () => (await plane.api('GET', '/readyz')).status === 503, {
    withinMs: 15_000,
    everyMs: 100,
  })
  await connection.exec('ROLLBACK')
  await eventually('the plane to be ready', async () => (await plane.api('GET', '/readyz')).status === 200, {
    withinMs: 15_000,
    everyMs: 100,
  })
})

test('a value or a statement that the server does not accept is no trouble of the store; a cancelled or lost one is', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const connection = await database.connect()
  const faultOf = async (text: string, values: readonly string[] = []): Promise<StoreFault> =>
    connection.run({ name: '', text }, values).then(
      () => assert.fail(`${text} was accepted`),
      (error: unknown) => new StoreFault('the store cannot be read', error),
    )
  const troubleAfter = async (fault: StoreFault): Promise<boolean> => {
    const health = openPgHealth(
      { clock: systemClock, log: silentLog },
      { write: () => Promise.reject(fault) },
      { self: 1 },
    )
    const failing = () => Promise.reject(fault)
    const reads = health.watched({ read: failing, write: failing, connect: failing, close: failing })
    await assert.rejects(reads.read({ name: '', text: '' }))
    return health.trouble() !== null
  }
  assert.equal(await troubleAfter(await faultOf('SELECT $1::text', ['a\u0000b'])), false)
  assert.equal(await troubleAfter(await faultOf('SELECT 1 / 0')), false)
  assert.equal(await troubleAfter(await faultOf('SELECT * FROM no_such_table')), false)
  assert.equal(await troubleAfter(new StoreFault('the store cannot be read', new Error('no answer in time'))), true)
  await connection.exec(`SET statement_timeout = '20ms'`)
  assert.equal(await troubleAfter(await faultOf('SELECT pg_sleep(5)')), true)
  await connection.exec(`SET statement_timeout = 0`)
  assert.equal(await troubleAfter(await faultOf('SELECT pg_terminate_backend(pg_backend_pid())')), true)
})
