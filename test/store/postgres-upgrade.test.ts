// Replicas of two releases on one store: this release runs on the schema of the release before, and upgrades it when that one's last
// replica has no lease any more. Replicas of the release before are lease rows here; test/compat has the real ones.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Change, RowKind } from '#domain/core/change.ts'
import { defaultProbeSilenceMs, type Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { StoreFault, UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { lookupIndexes, migrations } from '#plane/store/postgres/migrations.ts'
import { migrateDatabase, migrationLock, schemaLock, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import {
  kindsSince,
  newestSchema,
  oldestSchema,
  partsSince,
  releaseOfSchema,
} from '#plane/store/postgres/schema-since.ts'
import { connectPostgres, type PgConnection } from '#platform/postgres.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { change, note, read, someCertificate, someNode } from './harness.ts'
import { committed, everything, makeSchema, replicated, type Replicated } from './postgres-setup.ts'

const setUp = async (t: TestContext): Promise<Replicated> => {
  const site = await replicated(t)
  await makeSchema(site.connection, oldestSchema)
  return site
}

/** The release before: the oldest on whose schema a plane runs. */
const before = releaseOfSchema[oldestSchema]

const olderLease = (name: string, expires = "interval '1 hour'", release: string = before): string =>
  `INSERT INTO replica (name, version, started_at, expires_at) VALUES ('${name}', '${release}', now(), now() + ${expires})`

const connect = ({ target }: Replicated): Promise<PgConnection> =>
  connectPostgres(target, { applicationName: 'muster test', connectWithinMs: 5000 })
const migrate = (site: Replicated, within = '60s') =>
  migrateDatabase({ connect: () => connect(site) }, { locks: within, readers: within })

const versionIn = async (connection: PgConnection): Promise<number | null> => (await schemaOf(connection)).version

/** A node and a certificate over a key, with the claim on it. */
const certified = (id: string, spki: string): Change => ({
  reads: [read('node', id, 0), read('key-claim', spki, 0)],
  writes: [
    { put: 'node', value: someNode(id) },
    {
      put: 'certificate',
      value: someCertificate(spki, {
        ...{ spki, issuedAtMs: 7, notAfterMs: Date.now() + 60_000 },
        subject: { kind: 'node', node: id, epoch: 1 },
      }),
    },
    { put: 'key-claim', value: { spki, holders: [{ node: id, use: 'tls', sinceMs: 7 }] } },
  ],
  entries: [note(id)],
})

const profile = (probeSilenceMs: number): Profile => ({ ...(shippedProfiles[0] as Profile), probeSilenceMs })
const newProfile = (probeSilenceMs: number): Change =>
  change([read('profile', 'gpu-cloud', 0)], [{ put: 'profile', value: profile(probeSilenceMs) }])

const holdersOf = async (store: Store, spki: string) => (await store.get('key-claim', spki))?.value.holders

const toBeUpgraded = (store: Store) =>
  eventually('the upgrade to be finished', () => store.unfinishedUpgrade() === null, { withinMs: 30_000 })

const waitingFor = (site: Replicated, lock: number) =>
  eventually('somebody to wait for the lock', async () => {
    const [found] = await site.sql(`SELECT count(*) AS count FROM pg_locks
      WHERE locktype = 'advisory' AND NOT granted AND classid = ${Math.floor(lock / 2 ** 32)} AND objid = ${lock % 2 ** 32}
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
    return Number(found?.['count']) > 0
  })

/** Names of tables, and of columns behind them. */
const placesOn = async (t: TestContext, schema: number): Promise<ReadonlySet<string>> => {
  const { connection, sql } = await replicated(t)
  await makeSchema(connection, schema)
  const found = await sql(`SELECT table_name || '.' || column_name AS name FROM information_schema.columns
    WHERE table_schema = 'public' UNION SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
  return new Set(found.map((row) => String(row['name'])))
}

test('every table and column that is not in the schema of the release before says so', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const [earlier, now] = [await placesOn(t, oldestSchema), await placesOn(t, newestSchema)]
  const later = (schema: number): boolean => schema > oldestSchema
  const kinds = Object.entries(kindsSince) as [RowKind, { schema: number }][]
  const tables = kinds.filter(([, { schema }]) => later(schema)).map(([kind]) => tableShapes[kind].table)
  const parts = Object.entries(partsSince).filter(([, schema]) => later(schema))
  const declared = [...tables, ...parts.map(([part]) => part)]
  const isDeclared = (place: string): boolean => declared.some((one) => place === one || place.startsWith(`${one}.`))
  assert.deepEqual(
    [...now].filter((place) => !earlier.has(place) && !isDeclared(place)),
    [],
  )
  assert.deepEqual(
    declared.filter((place) => earlier.has(place) || !now.has(place)),
    [],
  )
  for (const { table, columns } of Object.values(tableShapes))
    for (const column of ['key', 'version', 'doc', ...Object.keys(columns)]) assert.ok(now.has(`${table}.${column}`))
})

test('beside a replica of the release before the store keeps its schema, refuses what is new, and is upgraded after it', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  await site.connection.exec(olderLease('old-plane'))
  const store = await site.open()
  let published = 0
  store.onUpgraded(() => published++)
  assert.equal(await versionIn(site.connection), oldestSchema)

  await committed(store, certified('gpu-001', 'k1'))
  assert.equal(await holdersOf(store, 'k1'), undefined)
  assert.deepEqual(await store.list('key-claim', { after: null, limit: 10 }), [])
  await store.addLived(60_000)
  assert.equal(await store.lived(), 0)
  assert.deepEqual(
    (await store.replicas.leased()).map(({ name }) => name),
    ['old-plane', 'test'],
  )

  await assert.rejects(store.commit(newProfile(60_000)), (error) => {
    assert(error instanceof UpgradeUnfinished)
    assert.match(error.what, /^probeSilenceMs of a profile .* waits for /)
    return true
  })
  assert.equal(store.trouble(), null)
  await committed(store, newProfile(defaultProbeSilenceMs))
  const [written] = await site.sql('SELECT doc FROM profile')
  assert.ok(!String(written?.['doc']).includes('probeSilenceMs'))
  assert.equal((await store.get('profile', 'gpu-cloud'))?.value.probeSilenceMs, defaultProbeSilenceMs)

  const { version: registered } = (await store.get('node', 'gpu-001')) ?? assert.fail('no node')
  const removes = [{ row: 'node', key: 'gpu-001' }] as const
  const removal = { ...change([read('node', 'gpu-001', registered)], []), removes }
  await assert.rejects(store.commit(removal), (error) => {
    assert(error instanceof UpgradeUnfinished)
    assert.match(error.what, /^the removal of a row .* waits for /)
    return true
  })
  const schemas = `the store has schema ${oldestSchema}, this release has ${newestSchema}`
  assert.deepEqual(store.warnings(), [
    `the upgrade is unfinished: ${schemas}; waiting for old-plane (${before}) to stop`,
  ])
  assert.deepEqual(await migrate(site), {
    ...{ from: oldestSchema, to: oldestSchema, waitsFor: [`old-plane (${before})`] },
  })

  await site.connection.exec("DELETE FROM replica WHERE name = 'old-plane'")
  await toBeUpgraded(store)
  assert.deepEqual([await versionIn(site.connection), published, store.warnings()], [newestSchema, 1, []])
  // The row of the node names no key: only its certificate does.
  assert.deepEqual(await holdersOf(store, 'k1'), [{ node: 'gpu-001', use: 'tls', sinceMs: 7 }])
  const { version } = (await store.get('profile', 'gpu-cloud')) ?? assert.fail('no profile')
  await committed(store, change([read('profile', 'gpu-cloud', version)], [{ put: 'profile', value: profile(60_000) }]))
  assert.equal((await store.get('profile', 'gpu-cloud'))?.value.probeSilenceMs, 60_000)
  assert.equal(await store.commit(certified('gpu-002', 'k1')), 'lost-race')
  assert.equal((await store.journal.read(everything)).length, 3)
})

test('a commit that waits while a step is taken is planned again: its claim is written, and none is left out behind the step', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  await site.connection.exec(olderLease('old-plane'))
  const store = await site.open()
  await committed(store, certified('gpu-001', 'k1'))
  await committed(store, newProfile(defaultProbeSilenceMs))
  const step = await connect(site)
  await step.exec(`BEGIN; SELECT pg_advisory_xact_lock(${schemaLock}); ${migrations.slice(oldestSchema).join(';\n')}`)
  const waiting = store.commit(certified('gpu-002', 'k2'))
  const taken = store.commit(certified('gpu-003', 'k1'))
  const renamed = { ...profile(defaultProbeSilenceMs), description: 'another' }
  const changed = store.commit(change([read('profile', 'gpu-cloud', 1)], [{ put: 'profile', value: renamed }]))
  await waitingFor(site, schemaLock)
  await step.exec(`UPDATE muster_schema SET version = ${newestSchema}; COMMIT`)
  await step.end()
  assert.equal(typeof (await waiting), 'object')
  // It was decided without claims, and the step has made one.
  assert.equal(await taken, 'lost-race')
  // The same goes for a setting that the step has changed.
  assert.equal(await changed, 'lost-race')
  assert.equal(store.unfinishedUpgrade(), null)
  assert.deepEqual(await holdersOf(store, 'k2'), [{ node: 'gpu-002', use: 'tls', sinceMs: 7 }])
})

test('a step waits for commits under a lease that has ended meanwhile, and is given up where that takes long', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  await site.connection.exec(olderLease('old-plane', "interval '1 second'"))
  // As every release begins a group of commits.
  const old = await connect(site)
  await old.exec("BEGIN; SELECT number FROM replica WHERE name = 'old-plane' FOR KEY SHARE")
  await site.connection.exec('SELECT pg_sleep(1)')
  await assert.rejects(migrate(site, '2s'), StoreFault)
  assert.equal(await versionIn(site.connection), oldestSchema)
  const credential = { kind: 'key', spki: 'r1', publicKey: '', registeredAtMs: 8 } as const
  const late = someNode('late', { recovery: { credential, recoveredAtMs: [], denied: null, episode: null } })
  await old.exec(`INSERT INTO node (key, version, doc, membership, profile)
    VALUES ('late', 1, '${JSON.stringify(late)}', 'registered', 'gpu-cloud'); COMMIT`)
  await old.end()
  assert.deepEqual(await migrate(site), {
    ...{ from: oldestSchema, to: newestSchema, waitsFor: [] },
  })
  const store = await site.open()
  assert.deepEqual(await holdersOf(store, 'r1'), [{ node: 'late', use: 'recovery', sinceMs: 8 }])
})

test('a reader of the leases is met before any commit waits, and the warning says what is in the way', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  await site.connection.exec(olderLease('old-plane'))
  const store = await site.open()
  // As pg_dump does for as long as it runs.
  const dump = await connect(site)
  await dump.exec('BEGIN; LOCK TABLE replica IN ACCESS SHARE MODE')
  await site.connection.exec("DELETE FROM replica WHERE name = 'old-plane'")
  await eventually('the attempt to fail', () => /the last attempt failed: /.test(String(store.warnings())), {
    withinMs: 30_000,
  })
  assert.equal(await versionIn(site.connection), oldestSchema)
  await committed(store, certified('gpu-001', 'k1'))
  await dump.exec('COMMIT')
  await dump.end()
  await migrate(site)
  await toBeUpgraded(store)
  assert.deepEqual(await holdersOf(store, 'k1'), [{ node: 'gpu-001', use: 'tls', sinceMs: 7 }])
})

test('indexes are built beside commits and starts, and what a crash leaves of one is dropped and built again', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicated(t)
  // The last one without these indexes.
  const schema = 3
  await makeSchema(site.connection, schema)
  await site.connection.exec(olderLease('old-plane', undefined, '0.3.1'))
  const store = await site.open()
  await committed(store, certified('gpu-001', 'k1'))
  const validity = async (): Promise<readonly unknown[]> => {
    const names = lookupIndexes.map(({ name }) => `'${name}'`).join()
    const found = await site.sql(`SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
      WHERE relname IN (${names})`)
    return found.map((row) => row['indisvalid'])
  }
  // As pg_dump has it: an index waits for everyone who could still read without it.
  const dump = await connect(site)
  await dump.exec('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM domain')
  await site.connection.exec("DELETE FROM replica WHERE name = 'old-plane'")
  await eventually('an index to be built', async () => (await validity()).includes(false), { withinMs: 30_000 })
  await committed(store, certified('gpu-002', 'k2'))
  assert.deepEqual(await migrate(site), { from: schema, to: schema, waitsFor: [] })
  const second = await site.open()
  await committed(second, certified('gpu-003', 'k3'))

  await site.connection.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'muster migrate' AND datname = current_database()`)
  await eventually('the attempt to fail', () =>
    /the last attempt failed: .*key_claim_by_holder/.test(String(store.warnings())),
  )
  assert.deepEqual(await validity(), [false])
  await dump.exec('COMMIT')
  await dump.end()
  assert.equal((await migrate(site)).to, newestSchema)
  assert.deepEqual(await validity(), [true, true, true, true])
  await Promise.all([store, second].map(toBeUpgraded))
  const claims = await store.list('key-claim', { where: { holder: 'gpu-002' }, after: null, limit: 10 })
  assert.deepEqual(
    claims.map(({ value }) => value.spki),
    ['k2'],
  )
})

test('a replica of the release before that is just starting is seen: between its look and its lease no step is taken', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  const migrating = migrate(site)
  await eventually('the migration to hold its lock', async () => {
    const [held] = await site.sql(`SELECT pg_try_advisory_xact_lock(${migrationLock}) AS free`)
    return held?.['free'] === false
  })
  await site.connection.exec(olderLease('starting'))
  assert.deepEqual(await migrating, { from: oldestSchema, to: oldestSchema, waitsFor: [`starting (${before})`] })
  assert.equal(await versionIn(site.connection), oldestSchema)
})

test('a step that fails in the middle changes nothing, and the store goes on with the schema it had', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await setUp(t)
  await site.connection.exec(olderLease('old-plane'))
  const store = await site.open()
  await committed(store, certified('gpu-001', 'k1'))
  // In the way of the last statement of the step.
  await site.connection.exec('ALTER TABLE replica ADD COLUMN clock_offset_ms BIGINT')
  await assert.rejects(migrateAlone(site))
  assert.deepEqual(await site.sql("SELECT to_regclass('key_claim') AS found"), [{ found: null }])
  await committed(store, certified('gpu-002', 'k2'))
  await site.connection.exec('ALTER TABLE replica DROP COLUMN clock_offset_ms')
  await toBeUpgraded(store)
  assert.deepEqual(await holdersOf(store, 'k2'), [{ node: 'gpu-002', use: 'tls', sinceMs: 7 }])
})

const migrateAlone = async (site: Replicated): Promise<unknown> => {
  await site.connection.exec("UPDATE replica SET expires_at = now() WHERE name = 'old-plane'")
  return migrate(site)
}

test('no lease is taken on a schema of a later release, whenever that came', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const site = await replicated(t)
  const store = await site.open()
  assert.equal(store.unfinishedUpgrade(), null)
  await site.connection.exec(`UPDATE muster_schema SET version = ${newestSchema + 1}; DELETE FROM replica`)
  await eventually('the replica to be without a lease', () => store.replicas.standing().kind === 'expired', {
    withinMs: 30_000,
  })
  assert.deepEqual(await site.sql('SELECT number FROM replica'), [])
  await site.connection.exec(`UPDATE muster_schema SET version = ${newestSchema}`)
  await eventually('the replica to have a lease', () => store.replicas.standing().kind === 'serving', {
    withinMs: 30_000,
  })
})
