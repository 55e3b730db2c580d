// A store of the release before, opened by this one: every document gets what it did not have, and keeps the rest.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import type { Write } from '#domain/core/change.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, Slot } from '#domain/core/node.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { migrate, migrations as sqliteSteps } from '#plane/store/sqlite/migrations.ts'
import { readablePostgres } from '#plane/store/copy/open-postgres.ts'
import { storedRecords } from '#plane/store/copy/stored-records.ts'
import { openPgAccess } from '#plane/store/postgres/pg-access.ts'
import { migrateDatabase } from '#plane/store/postgres/run-migrations.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { keyOf } from '../fakes/fleet-rows.ts'
import { withPeer } from '../peers/peer.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { makeSigner, openPostgresStoreOn, openStore, someNode } from './harness.ts'
import { makeSchema } from './postgres-setup.ts'

/** Steps that were there before the fleet. */
const before = { sqlite: 3, postgres: 1 }

const added: Partial<Record<Write['put'], readonly string[]>> = {
  node: ['allocations', 'wireguard', 'machine'],
  profile: ['wireguard'],
  domain: ['issuance', 'maintenance', 'overlayPrefix'],
  denial: ['atMs', 'reason'],
  issuer: ['compromisedAtMs'],
}

const rows: readonly Write[] = [
  { put: 'node', value: someNode('gpu-001', { assignment: 'blue' }) },
  { put: 'node', value: someNode('gpu-002') },
  ...shippedProfiles.slice(0, 1).map((value): Write => ({ put: 'profile', value })),
  { put: 'domain', value: defaultDomainSettings('lab.example') },
  {
    put: 'denial',
    value: { kind: 'epoch', node: 'gpu-001', epoch: 1, atMs: 0, untilMs: 9, why: 'x', reason: 'unspecified' },
  },
]

const oldDocument = (write: Write): string => {
  const { put, value } = write
  const old: Record<string, unknown> = { ...value }
  for (const field of added[put] ?? []) delete old[field]
  if (write.put === 'profile') {
    const { issuer: _signs, minLifetimeMs: _least, ...certificate } = write.value.certificate
    old['certificate'] = certificate
  }
  return JSON.stringify(old)
}

const oldColumns: Partial<Record<Write['put'], Readonly<Record<string, string | number>>>> = {
  node: { membership: 'registered', profile: 'gpu-cloud' },
  denial: { until_ms: 9 },
}

const insertOf = (
  write: Write,
): { text: (value: (place: number) => string) => string; values: (string | number)[] } => {
  const columns = oldColumns[write.put] ?? {}
  const names = ['key', 'version', 'doc', ...Object.keys(columns)]
  return {
    text: (value) =>
      `INSERT INTO ${tableShapes[write.put].table} (${names.join(', ')}) VALUES (${names.map((_, at) => value(at + 1)).join(', ')})`,
    values: [keyOf(write), 1, oldDocument(write), ...Object.values(columns)],
  }
}

const isWhole = async (store: Store): Promise<void> => {
  for (const write of rows) {
    const found = await store.get(write.put, keyOf(write))
    assert.deepEqual(found?.value, write.value, `${write.put} ${keyOf(write)}`)
  }
  const blue = await store.nodes({ membership: null, profile: null, vcluster: 'blue', after: null, limit: 10 })
  assert.deepEqual(
    blue.map(({ value }) => value.id),
    ['gpu-001'],
  )
}

test('a SQLite store from before the fleet has everything a new one has', async (t) => {
  const folder = tempFolder(t)
  fs.chmodSync(folder, 0o700)
  const database = new DatabaseSync(path.join(folder, 'muster.db'))
  for (const step of sqliteSteps.slice(0, before.sqlite)) database.exec(step)
  for (const row of rows) {
    const { text, values } = insertOf(row)
    database.prepare(text(() => '?')).run(...values)
  }
  database.exec(`PRAGMA application_id = ${0x4d535452}; PRAGMA user_version = ${before.sqlite}`)
  database.close()
  const store = await openStore(folder, makeSigner())
  await isWhole(store)
  await store.close()
})

test('a PostgreSQL store from before the fleet has everything a new one has', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const connection = await database.connect()
  await makeSchema(connection, before.postgres)
  for (const [at, row] of rows.entries()) {
    const { text, values } = insertOf(row)
    await connection.run({ name: `old-row-${at}`, text: text((place) => `$${place}`) }, values)
  }
  await connection.end()
  const store = await openPostgresStoreOn(database.target, makeSigner())
  await isWhole(store)
  await store.close()
})

test('what a plane of the release before writes into the newer schema is read as a whole', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const store = await openPostgresStoreOn(database.target, makeSigner())
  const connection = await database.connect()
  for (const [at, row] of rows.entries()) {
    const { text, values } = insertOf(row)
    await connection.run({ name: `older-row-${at}`, text: text((place) => `$${place}`) }, values)
  }
  for (const write of rows) {
    assert.deepEqual((await store.get(write.put, keyOf(write)))?.value, write.value, keyOf(write))
    const [listed] = await store.list(write.put, { after: null, limit: 1 })
    assert.deepEqual(Object.keys(listed?.value ?? {}).toSorted(), Object.keys(write.value).toSorted())
  }
  assert.deepEqual(await store.denials(), [rows.find(({ put }) => put === 'denial')?.value])
  // A copy has it as a whole, too: the store it goes to may read no older rows.
  const copied: Record<string, unknown> = {}
  for await (const { kind, record } of storedRecords(readablePostgres(connection)))
    if (kind === 'row') copied[`${record.row} ${tableShapes[record.row].key(record.value as never)}`] = record.value
  for (const write of rows) assert.deepEqual(copied[`${write.put} ${keyOf(write)}`], write.value)
  await connection.end()
  await store.close()
})

// L3: a store of 0.2.0, where one key was certified for several nodes.

const slot = (spki: string, serial: string): Slot => ({
  ...{ issuer: 'ca1', serial, spki, sha256: serial, issuedAtMs: 1000, notAfterMs: 9000 },
})
const twin = (id: string, serial: string, recoveryKey: string): Node =>
  someNode(id, {
    membership: {
      kind: 'active',
      sinceMs: 1000,
      slots: { current: slot('k1', serial), pending: slot(`k-${id}`, `${serial}b`), retired: null },
    },
    recovery: {
      credential: { kind: 'key', spki: recoveryKey, publicKey: '', registeredAtMs: 2000 },
      ...{ recoveredAtMs: [], denied: null, episode: null },
    },
  })
const twins = [twin('twin-1', '1', 'r1'), twin('twin-2', '2', 'r2')]
const release020 = { sqlite: 4, postgres: 2 }

const isClaimed = async (store: Store): Promise<void> => {
  const claimOf = async (spki: string) => (await store.get('key-claim', spki))?.value.holders
  assert.deepEqual(await claimOf('k1'), [
    { node: 'twin-1', use: 'tls', sinceMs: 1000 },
    { node: 'twin-2', use: 'tls', sinceMs: 1000 },
  ])
  assert.deepEqual(await claimOf('k-twin-2'), [{ node: 'twin-2', use: 'tls', sinceMs: 1000 }])
  assert.deepEqual(await claimOf('r1'), [{ node: 'twin-1', use: 'recovery', sinceMs: 2000 }])
  const shared = await store.list('key-claim', { where: { shared: 1 }, after: null, limit: 10 })
  assert.deepEqual(
    shared.map(({ value }) => value.spki),
    ['k1'],
  )
}

const twinInsert = (value: (place: number) => string): string =>
  `INSERT INTO node (key, version, doc, membership, profile) VALUES (${[1, 2, 3, 4, 5].map(value).join(', ')})`
const twinValues = (node: Node) => [node.id, 1, JSON.stringify(node), 'active', node.profile]

test('L3: a SQLite store of 0.2.0 gets a claim for every key, which names all nodes that share it', async (t) => {
  const folder = tempFolder(t)
  fs.chmodSync(folder, 0o700)
  const database = new DatabaseSync(path.join(folder, 'muster.db'))
  for (const step of sqliteSteps.slice(0, release020.sqlite)) database.exec(step)
  for (const node of twins) database.prepare(twinInsert(() => '?')).run(...twinValues(node))
  database.exec(`PRAGMA application_id = ${0x4d535452}; PRAGMA user_version = ${release020.sqlite}`)
  database.close()
  const store = await openStore(folder, makeSigner())
  await isClaimed(store)
  await store.close()
})

test('L3: a PostgreSQL store of 0.2.0 gets a claim for every key, which names all nodes that share it', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const connection = await database.connect()
  await makeSchema(connection, release020.postgres)
  for (const node of twins) {
    await connection.run({ name: `twin-${node.id}`, text: twinInsert((place) => `$${place}`) }, twinValues(node))
  }
  await connection.end()
  const store = await openPostgresStoreOn(database.target, makeSigner())
  await isClaimed(store)
  await store.close()
})

// L2: lived time of a domain of 0.2.0, by what its journal shows.

const hourMs = 3_600_000
const madeMs = Date.UTC(2024, 0, 1)
const dayOfEntries = (fromMs: number): number[] => Array.from({ length: 49 }, (_, at) => fromMs + (at * hourMs) / 2)
/** Two days; a week without a plane; a day under a clock that is 20 years ahead, and then another one under a good clock. */
const times = [
  ...dayOfEntries(madeMs),
  ...dayOfEntries(madeMs + 24 * hourMs),
  ...dayOfEntries(madeMs + 20 * 365 * 24 * hourMs),
  ...dayOfEntries(madeMs + 240 * hourMs),
]
/** Four days, and an hour for each of the two jumps. */
const shownMs = 4 * 24 * hourMs + 2 * hourMs
const entryAt = (ms: number): string => `{"actor":"a","atMs":${ms},"body":{"atMs":7}}`

const migratedSqlite = (t: TestContext, fill: (database: DatabaseSync) => void): number => {
  const database = new DatabaseSync(path.join(tempFolder(t), 'muster.db'))
  for (const step of sqliteSteps.slice(0, release020.sqlite)) database.exec(step)
  fill(database)
  database.exec(`PRAGMA application_id = ${0x4d535452}; PRAGMA user_version = ${release020.sqlite}`)
  migrate(database)
  const found = database.prepare('SELECT ms FROM lived').get()
  database.close()
  return Number(found?.['ms'])
}

test('L2: a SQLite store of 0.2.0 has lived for as long as its journal shows, without what a wrong clock says', (t) => {
  const insert = `INSERT INTO journal (sequence, operation, bytes, hash, type) VALUES (?, ?, ?, x'00', 'refused')`
  const fill = (database: DatabaseSync): void =>
    times.forEach((ms, at) => void database.prepare(insert).run(100 + at, `o${at}`, entryAt(ms)))
  assert.equal(migratedSqlite(t, fill), shownMs)
  assert.equal(
    migratedSqlite(t, () => {}),
    0,
  )
  const many = `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200000)
    INSERT INTO journal (sequence, operation, bytes, hash, type)
    SELECT n, n, '{"actor":"a","atMs":' || (${madeMs} + n * 60000) || ',"body":{}}', x'00', 'refused' FROM n`
  const sampled = migratedSqlite(t, (database) => database.exec(many))
  assert.ok(sampled <= 200_000 * 60_000 && sampled > 199_990 * 60_000, String(sampled))
})

test('L2: a PostgreSQL store of 0.2.0 has lived for as long as all its chains show together', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const connection = await database.connect()
  const rowsOf = (chain: string, all: readonly number[]): string =>
    `INSERT INTO chain (chain, domain, base_sequence, base_hash, base_signature, base_key_id, sequence, hash)
       VALUES ('${chain}', 'd', 100, '', '', 'k', ${100 + all.length}, '');
     ${all.map((ms, at) => `INSERT INTO journal (chain, sequence, operation, bytes, hash, type) VALUES ('${chain}', ${101 + at}, '${chain}${at}', '${entryAt(ms)}', '', 'refused');`).join('')}`
  await makeSchema(connection, release020.postgres)
  await connection.exec(`BEGIN; ${rowsOf('one', times)} ${rowsOf('two', dayOfEntries(madeMs + 1000))} COMMIT`)
  const access = openPgAccess({ clock: systemClock, timers: systemTimers, log: silentLog }, database.target)
  await migrateDatabase(access)
  await access.close()
  const { rows: found } = await connection.run({ name: 'lived', text: 'SELECT ms FROM lived' })
  assert.equal(Number(found[0]?.['ms']), shownMs)
  await connection.end()
})

// The names that a plane of 0.3 has served, by its journal.

const release030 = { sqlite: 6, postgres: 3 }
const served = (atMs: number, endsMs: number, names: readonly string[]): string =>
  JSON.stringify({ atMs, body: { names, not_after: new Date(endsMs).toISOString() } })
const inAYearMs = Date.now() + 365 * 24 * hourMs
/** 0.3 wrote mapped addresses as they were, in their canonical text. One entry is damaged. */
const servedEntries = [
  served(madeMs, madeMs + 90 * 24 * hourMs, ['old.example', 'localhost']),
  served(madeMs + hourMs, inAYearMs, [
    'localhost',
    '192.0.2.10',
    '2001:db8::1',
    '::ffff:192.0.2.10',
    '::ffff:c000:20b',
  ]),
  '{"atMs":17,"body":{"names":["cut-o',
]

const areServed = async (store: Store): Promise<void> => {
  const claims = (await store.list('name-claim', { where: { holder: 'plane' }, after: null, limit: 10 })).map(
    ({ value }) => value,
  )
  assert.deepEqual(
    claims.map(({ name, sinceMs, holder }) => [name, sinceMs - madeMs, holder.kind === 'plane' && holder.dropped?.by]),
    [
      ['dns:localhost', 0, undefined],
      ['dns:old.example', 0, 'system:upgrade'],
      ['ip:192.0.2.10', hourMs, undefined],
      ['ip:192.0.2.11', hourMs, undefined],
      ['ip:2001:db8::1', hourMs, undefined],
    ],
  )
  const [, old] = claims
  assert.ok(old?.holder.kind === 'plane' && (old.holder.dropped?.atMs ?? 0) > madeMs)
  assert.deepEqual(
    { ...old.holder, dropped: null },
    {
      ...{ kind: 'plane', use: 'certificate', joinStrings: 0, namedAtMs: null, retaken: false, dropped: null },
    },
  )
}

/** A row of each kind that cannot be read: it stays as it is, is in the way of nothing, and is named where it is read. */
const damaged: readonly (readonly [table: string, columns: Readonly<Record<string, string | number>>])[] = [
  ['node', { membership: 'active', profile: 'gpu-cloud' }],
  ['token', { id: 't1' }],
  ['profile', {}],
  ['vcluster', {}],
  ['domain', {}],
  ['key_claim', { shared: 0 }],
  ['wireguard_key', {}],
  ['overlay_address', {}],
  ['alert', { id: 'a1', unresolved: 0 }],
]
const damagedDoc = '{"node":"gpu-0'
const damagedRows = damaged.map(([table, columns]) => {
  const given: Readonly<Record<string, string | number>> = { key: 'x', version: 1, doc: damagedDoc, ...columns }
  const values = Object.values(given).map((value) => (typeof value === 'number' ? value : `'${value}'`))
  return `INSERT INTO ${table} (${Object.keys(given).join()}) VALUES (${values.join()});`
})
const damagedDocs = damaged.map(([table]) => `SELECT doc FROM ${table} WHERE key = 'x'`).join(' UNION ALL ')

test('a SQLite store of 0.3 knows every name that its plane has served, and keeps what cannot be read', async (t) => {
  const folder = tempFolder(t)
  fs.chmodSync(folder, 0o700)
  const database = new DatabaseSync(path.join(folder, 'muster.db'))
  for (const step of sqliteSteps.slice(0, release030.sqlite)) database.exec(step)
  database.exec(damagedRows.join(''))
  const [first = '', ...others] = servedEntries
  const insert = `INSERT INTO journal (sequence, operation, bytes, hash, type) VALUES (?, ?, ?, x'00', 'server_certificate.issued')`
  for (const [at, bytes] of others.entries()) database.prepare(insert).run(1 + at, `o${at}`, bytes)
  database.exec(`INSERT INTO closed_chain VALUES ('c', 'd', 0, x'00', x'00', 'k', 1, x'00');
    INSERT INTO closed_entry (chain, sequence, operation, bytes, hash, type)
      VALUES ('c', 1, 'c1', '${first}', x'00', 'server_certificate.issued')`)
  database.exec(`PRAGMA application_id = ${0x4d535452}; PRAGMA user_version = ${release030.sqlite}`)
  migrate(database)
  const claims = database.prepare('SELECT key, doc, holder FROM name_claim ORDER BY key').all()
  const kept = database.prepare(damagedDocs).all()
  database.close()
  assert.deepEqual(
    kept.map((row) => row['doc']),
    damaged.map(() => damagedDoc),
  )
  const rowsOf = claims.map((row) => ({ version: 1, value: JSON.parse(String(row['doc'])) as never }))
  await areServed({ list: async () => rowsOf } as unknown as Store)
})

test('a PostgreSQL store of 0.3 knows every name that its planes have served, and keeps what cannot be read', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const database = await postgresDatabase(t)
  const connection = await database.connect()
  await makeSchema(connection, release030.postgres)
  await connection.exec(damagedRows.join(''))
  const insert = `INSERT INTO journal (chain, sequence, operation, bytes, hash, type) VALUES ($1, 1, $1, $2, '', 'server_certificate.issued')`
  for (const [at, bytes] of servedEntries.entries()) {
    await connection.run({ name: `served-${at}`, text: insert }, [`chain-${at}`, bytes])
  }
  await connection.end()
  const access = openPgAccess({ clock: systemClock, timers: systemTimers, log: silentLog }, database.target)
  await migrateDatabase(access)
  const { rows: found } = await access.read({
    name: 'names',
    text: 'SELECT doc FROM name_claim ORDER BY key COLLATE "C"',
  })
  const { rows: kept } = await access.read({ name: 'damaged', text: damagedDocs })
  await access.close()
  assert.deepEqual(
    kept.map((row) => row['doc']),
    damaged.map(() => damagedDoc),
  )
  const rowsOf = found.map((row) => ({ version: 1, value: JSON.parse(String(row['doc'])) as never }))
  await areServed({ list: async () => rowsOf } as unknown as Store)
})
