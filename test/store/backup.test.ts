// A data folder copied while a plane writes to it, looked at, and brought up to date.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { backupStore } from '#plane/store/copy/backup-store.ts'
import { copyStore } from '#plane/store/copy/copy-store.ts'
import { migrateStore } from '#plane/store/copy/migrate-store.ts'
import { storeStatus } from '#plane/store/copy/store-status.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { migrations } from '#plane/store/postgres/migrations.ts'
import { newestSchema } from '#plane/store/sqlite/migrations.ts'
import { fleetRows } from '../fakes/fleet-rows.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { withPeer } from '../peers/peer.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { newNode } from './harness.ts'
import { furnishFolder, furnishStore, newDomain, onPostgres, onSqlite, run, withStoreIn } from './transfer-setup.ts'

const place = (t: TestContext) => {
  const folder = tempFolder(t)
  const config = onSqlite(path.join(folder, 'data'))
  const signer = furnishFolder(config.dataFolder)
  return { folder, config, signer, file: path.join(config.dataFolder, 'muster.db') }
}

const modeOf = (file: string): number => fs.statSync(file).mode & 0o777

test('a backup made amid commits is a data folder of one moment, with a journal that verifies', async (t) => {
  const { folder, config, signer } = place(t)
  const copy = path.join(folder, 'copy')
  await withStoreIn(config.dataFolder, signer, async (store) => {
    await furnishStore(store)
    let committed = 0
    let over = false
    const storm = (async () => {
      for (; !over; committed++) await store.commit(newNode(`storm-${committed}`))
    })()
    const before = committed
    const done = await backupStore(config, copy, run).finally(() => (over = true))
    await storm
    assert.ok(committed > before, 'nothing was committed while it was copied')
    assert.ok(done.counts.node >= 2 && done.counts.node <= committed + 2)
    assert.equal(done.withSealingKey, true)
  })
  assert.equal(modeOf(copy), 0o700)
  const names = ['admin.key', 'keys', 'manifest.json', 'muster.db', 'seal.key']
  assert.deepEqual(fs.readdirSync(copy).sort(), names)
  for (const name of names.filter((one) => one !== 'keys')) assert.equal(modeOf(path.join(copy, name)), 0o600, name)
  assert.deepEqual(fs.readdirSync(path.join(copy, 'keys')), fs.readdirSync(path.join(config.dataFolder, 'keys')))
  await withStoreIn(copy, signer, async (store) => {
    assert.equal((await store.journal.verify()).kind, 'intact')
    assert.notEqual(await store.commit(newNode('after')), 'lost-race')
  })
})

test('a sealing key that lies elsewhere is not in the backup, nor is the administrator’s key', async (t) => {
  const { folder, config, signer } = place(t)
  const elsewhere = path.join(folder, 'seal.key')
  fs.renameSync(path.join(config.dataFolder, 'seal.key'), elsewhere)
  await withStoreIn(config.dataFolder, signer, async (store) => void (await store.commit(newDomain)))
  const copy = path.join(folder, 'copy')
  const done = await backupStore(onSqlite(config.dataFolder, elsewhere), copy, run)
  assert.equal(done.withSealingKey, false)
  assert.deepEqual(fs.readdirSync(copy).sort(), ['keys', 'manifest.json', 'muster.db'])
})

test('a backup is refused where the folder exists, where the key does not fit, and where the journal was altered', async (t) => {
  const { folder, config, signer, file } = place(t)
  await withStoreIn(config.dataFolder, signer, furnishStore)
  const there = path.join(folder, 'there')
  fs.mkdirSync(there)
  await assert.rejects(backupStore(config, there, run), { code: 'FILE_EXISTS' })
  const wrong = path.join(folder, 'wrong.key')
  fs.writeFileSync(wrong, `${'00'.repeat(32)}\n`, { mode: 0o600 })
  const copy = path.join(folder, 'copy')
  await assert.rejects(backupStore(onSqlite(config.dataFolder, wrong), copy, run), { code: 'SEALING_KEY_WRONG' })
  await assert.rejects(backupStore(onSqlite(path.join(folder, 'nowhere'), wrong), copy, run), { code: 'NO_STORE' })

  const database = new DatabaseSync(file)
  database.exec("UPDATE journal SET bytes = replace(bytes, 'gpu-001', 'gpu-009') WHERE sequence = 2")
  database.close()
  await assert.rejects(backupStore(config, copy, run), { code: 'JOURNAL_BROKEN' })
  await assert.rejects(copyStore(config, onSqlite(copy, path.join(config.dataFolder, 'seal.key')), null, run), {
    code: 'JOURNAL_BROKEN',
  })
  fs.rmSync(copy, { recursive: true })
  assert.deepEqual(fs.readdirSync(folder).sort(), ['data', 'there', 'wrong.key'])
  assert.deepEqual(fs.readdirSync(there), [])
})

test('an older schema is reported, migrated when asked, and left alone before', async (t) => {
  const { folder, config, signer, file } = place(t)
  await withStoreIn(config.dataFolder, signer, async (store) => void (await store.commit(newDomain)))
  assert.deepEqual(await migrateStore(config, false), { from: newestSchema, to: newestSchema })
  const database = new DatabaseSync(file)
  for (const { put } of fleetRows) database.exec(`DROP TABLE ${tableShapes[put].table}`)
  database.exec('DROP TABLE IF EXISTS program; DROP TABLE IF EXISTS name_claim; DROP TABLE purged_node')
  database.exec(`DROP VIEW chain; DROP VIEW every_entry; DROP TABLE closed_chain; DROP TABLE closed_entry; DROP TABLE lived; DROP TABLE key_claim; DROP INDEX node_by_vcluster; ALTER TABLE node DROP COLUMN vcluster; DROP INDEX certificate_by_node;
    ALTER TABLE observation DROP COLUMN capabilities; ALTER TABLE observation DROP COLUMN overlay;
    ALTER TABLE observation DROP COLUMN outputs; ALTER TABLE observation DROP COLUMN task_verifiers;
    ALTER TABLE observation DROP COLUMN issuer_roots;
    DROP TABLE alert; DROP TABLE webhook_progress; ALTER TABLE observation DROP COLUMN report;
    ALTER TABLE observation DROP COLUMN rehearsed_at_ms; ALTER TABLE observation DROP COLUMN evidence;
    PRAGMA user_version = 1`)
  database.close()
  const old = await storeStatus(config)
  assert.deepEqual([old.schema, old.newestSchema, old.content], [1, newestSchema, null])
  const sealKey = path.join(config.dataFolder, 'seal.key')
  const elsewhere = onSqlite(path.join(folder, 'elsewhere'), sealKey)
  await assert.rejects(copyStore(config, elsewhere, null, run), { code: 'SCHEMA_OLD' })
  await assert.rejects(backupStore(config, path.join(folder, 'copy'), run), { code: 'SCHEMA_OLD' })
  assert.deepEqual(await migrateStore(config, true), { from: 1, to: newestSchema })
  assert.equal((await storeStatus(config)).schema, 1)
  assert.deepEqual(await migrateStore(config, false), { from: 1, to: newestSchema })
  assert.equal((await storeStatus(config)).content?.domain, 'lab.example')

  const newer = new DatabaseSync(file)
  newer.exec(`PRAGMA user_version = ${newestSchema + 1}`)
  newer.close()
  for (const doing of [migrateStore(config, false), migrateStore(config, true), storeStatus(config)])
    await assert.rejects(doing, (error) => error instanceof StoreRefused && error.code === 'SCHEMA_TOO_NEW')
})

test('the status of a store is the same with a plane on it and without', async (t) => {
  const { config, signer, file } = place(t)
  await withStoreIn(config.dataFolder, signer, async (store) => {
    await furnishStore(store)
    const running = await storeStatus(config)
    assert.equal(running.place, file)
    assert.equal(running.replicas[0]?.name, `process ${process.pid}`)
    const [head] = await store.journal.heads()
    assert.deepEqual(running.content?.chains, [
      { chain: head?.chain, sequence: head?.sequence, hash: head?.hash, writer: null },
    ])
    assert.deepEqual(
      [running.content?.nodes.revoked, running.content?.nodes.registered, running.content?.denials],
      [1, 1, 1],
    )
    assert.notEqual(await store.commit(newNode('goes-on')), 'lost-race')
  })
  const stopped = await storeStatus(config)
  assert.deepEqual([stopped.replicas, stopped.writeFault], [[], null])
  assert.equal(stopped.content?.nodes.registered, 2)
})

test('the status of PostgreSQL names its place, its planes and who leads, and no plane may be there when it is moved', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { folder, config, signer } = place(t)
  await withStoreIn(config.dataFolder, signer, furnishStore)
  const database = await postgresDatabase(t)
  const sealKey = path.join(config.dataFolder, 'seal.key')
  const there = onPostgres(database, sealKey)
  const into = (name: string) => onSqlite(path.join(folder, name), sealKey)
  await assert.rejects(copyStore(there, into('none'), null, run), { code: 'NO_STORE' })
  assert.deepEqual(await migrateStore(there, true), { from: null, to: migrations.length })
  assert.equal((await storeStatus(there)).schema, null)
  assert.deepEqual(await migrateStore(there, false), { from: null, to: migrations.length })

  const connection = await database.connect()
  await connection.exec(`INSERT INTO replica (name, version, started_at, expires_at)
      VALUES ('plane-a', '1', now(), now() + interval '1 minute'), ('plane-b', '1', now(), now() - interval '1 minute');
    UPDATE leadership SET number = 7, replica = 1`)
  await assert.rejects(copyStore(config, there, null, run), { code: 'STORE_IN_USE' })
  const { place: where, replicas, content, writeFault } = await storeStatus(there)
  assert.match(where, new RegExp(`/${database.name} as `))
  assert.deepEqual([content?.domain, writeFault], [null, null])
  assert.deepEqual(
    replicas.map(({ name, leads }) => [name, leads]),
    [['plane-a', true]],
  )
  await connection.exec("UPDATE replica SET expires_at = now() - interval '1 second'")
  await copyStore(config, there, null, run)
  await connection.exec(`DELETE FROM journal WHERE sequence > (SELECT max(sequence) FROM journal WHERE signature IS NOT NULL
    AND sequence < (SELECT max(sequence) FROM journal))`)
  await assert.rejects(copyStore(there, into('cut'), null, run), { code: 'JOURNAL_BROKEN' })
  await assert.rejects(backupStore(there, path.join(folder, 'copy'), run), { code: 'JOURNAL_BROKEN' })
  await connection.exec("UPDATE replica SET expires_at = now() + interval '1 minute' WHERE number = 1")
  await assert.rejects(copyStore(there, into('second'), null, run), { code: 'STORE_IN_USE' })
  assert.equal(fs.existsSync(path.join(folder, 'copy')), false)
})
