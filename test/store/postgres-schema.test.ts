// What Muster does to a database before it uses it, and to which databases it does nothing at all.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { migrations } from '#plane/store/postgres/migrations.ts'
import { exclusively } from '#plane/store/postgres/exclusively.ts'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { openSealedKeys } from '#plane/store/postgres/sealed-keys.ts'
import { StoreFault, StoreRefused, type StoreRefusedCode } from '#plane/store/contract/store-errors.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import type { PgConnection, PostgresTarget } from '#platform/postgres.ts'
import { systemTimers } from '#platform/timers.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { postgresDatabase } from '../process/postgres-server.ts'

const openAccess = (t: TestContext, target: PostgresTarget): PgAccess => {
  const access = openPgAccess({ clock: systemClock, timers: systemTimers, log: silentLog }, target)
  cleanup(t, () => access.close())
  return access
}

const refused = async (migration: Promise<unknown>, code: StoreRefusedCode, words: RegExp): Promise<void> => {
  await assert.rejects(migration, (error) => {
    assert(error instanceof StoreRefused, String(error))
    assert.equal(error.code, code)
    assert.match(error.message, words)
    return true
  })
}

const tables = async (connection: PgConnection): Promise<readonly unknown[]> => {
  const text = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
  return (await connection.run({ name: 'tables', text })).rows.map((row) => row['name'])
}

test('an empty database gets the newest schema, and of many planes that start at once one makes it', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  const connection = await connect()
  assert.deepEqual(await schemaOf(connection), { version: null, newest: migrations.length })
  assert.deepEqual(await tables(connection), [])
  await Promise.all(Array.from({ length: 5 }, () => migrateDatabase(openAccess(t, target))))
  assert.deepEqual(await schemaOf(connection), { version: migrations.length, newest: migrations.length })
})

test('a user without the right to create tables gets that error, and not that the database is away', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, name, connect } = await postgresDatabase(t)
  const connection = await connect()
  const user = `poor_${name}`
  await connection.exec(`REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE ${user} LOGIN`)
  cleanup(t, () => connection.exec(`DROP ROLE ${user}`))
  await refused(migrateDatabase(openAccess(t, { ...target, user })), 'DATABASE_REFUSED', /permission denied/)
  assert.deepEqual(await tables(connection), [])
})

test('a newer schema is refused and left as it is', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  const access = openAccess(t, target)
  await migrateDatabase(access)
  const connection = await connect()
  await connection.exec('UPDATE muster_schema SET version = 999; DROP TABLE sealed_key')
  const before = await tables(connection)
  await refused(migrateDatabase(access), 'SCHEMA_TOO_NEW', /schema 999/)
  assert.deepEqual(await tables(connection), before)
})

test('a foreign database is refused and left as it is', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  for (const theirs of ['CREATE TABLE theirs (x int)', 'CREATE TABLE muster_schema (version int)']) {
    const { target, connect } = await postgresDatabase(t)
    const connection = await connect()
    await connection.exec(theirs)
    await refused(migrateDatabase(openAccess(t, target)), 'NOT_A_STORE', /another program/)
    assert.equal((await tables(connection)).length, 1)
  }
})

test('tables of others in a schema of their own are no hindrance', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  await (await connect()).exec('CREATE SCHEMA theirs; CREATE TABLE theirs.node (x int)')
  await migrateDatabase(openAccess(t, target))
})

test('a database that refuses the login is distinguished from one that is away', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  const nowhere = openAccess(t, { ...target, database: 'nowhere' })
  await refused(migrateDatabase(nowhere), 'DATABASE_REFUSED', /nowhere/)
  const away = openAccess(t, { ...target, hosts: [{ host: '127.0.0.1', port: 1 }] })
  await assert.rejects(migrateDatabase(away), StoreFault)
})

test('a sealed key is added once, whichever plane adds it, and every plane finds it', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  await migrateDatabase(openAccess(t, target))
  const keys = [0, 1].map(() => openSealedKeys(openAccess(t, target)))
  const added = await Promise.all(keys.map((each, index) => each.add('root', `sealed by ${index}`)))
  assert.deepEqual(added.toSorted(), [false, true])
  const kept = `sealed by ${added.indexOf(true)}`
  for (const each of keys) assert.deepEqual([...(await each.all())], [['root', kept]])
  await keys[0]?.remove('root')
  assert.equal((await keys[1]?.all())?.size, 0)
})

test('an exclusive section is run by one plane at a time, and a plane that loses its connection is notified', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  let inside = 0
  const turn = (access: PgAccess): Promise<void> =>
    exclusively(systemTimers, access, async () => {
      assert.equal(++inside, 1)
      await access.read({ name: 'a-while', text: 'SELECT pg_sleep(0.01)' })
      inside--
    })
  await Promise.all(Array.from({ length: 8 }, () => turn(openAccess(t, target))))
  const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'muster exclusive' AND datname = current_database()`
  const connection = await connect()
  await assert.rejects(
    exclusively(systemTimers, openAccess(t, target), async () => {
      await connection.run({ name: 'cut', text: cut })
      await new Promise(() => {})
    }),
    StoreFault,
  )
})

test('a plane that hangs in an exclusive section is not waited for any longer, and is notified when it goes on', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  const alone = Promise.withResolvers<void>()
  const standStill = (): Promise<never> => {
    alone.resolve()
    return new Promise(() => {})
  }
  const standingStill = exclusively(systemTimers, openAccess(t, target), standStill, 200)
  const rejected = assert.rejects(standingStill, /may have begun the same/)
  await alone.promise
  assert.equal(await exclusively(systemTimers, openAccess(t, target), async () => 'next'), 'next')
  await rejected
})
