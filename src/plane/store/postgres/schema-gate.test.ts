import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { musterVersion } from '#platform/this-process.ts'
import { migrations } from './migrations.ts'
import { knowsSchema, openSchemaInUse, openUpgrade, waitsFor, type LeasedRelease } from './schema-gate.ts'
import { newestSchema, oldestSchema, releaseOfSchema } from './schema-since.ts'

const leased = (...releases: string[]): readonly LeasedRelease[] =>
  releases.map((version, at) => ({ name: `host-${at}`, version }))

test('every step has a schema, and every schema the release that brought it', () => {
  assert.equal(newestSchema, migrations.length)
  assert.deepEqual(
    Object.keys(releaseOfSchema).map(Number),
    [...migrations.keys()].map((at) => at + 1),
  )
  assert.ok(oldestSchema <= newestSchema)
})

test('a release knows the schemas that it or an earlier release has brought; what is no release knows none', () => {
  for (const [release, schema, known] of [
    ['0.2.0', 2, true],
    ['0.2.0', 3, false],
    ['0.2.1', 3, true],
    ['0.3.0', 3, true],
    ['1.0.0', 3, true],
    ['0.10.0', 3, true],
    ['0.2.1-rc.1', 3, true],
    ['dev', 2, false],
    ['', 1, false],
  ] as const)
    assert.equal(knowsSchema(release, schema), known, `${release} ${schema}`)
})

test('this release knows the newest schema: a plane would wait for its own lease otherwise', () => {
  assert.ok(
    knowsSchema(musterVersion, newestSchema),
    'the first schema of a release raises the version in package.json',
  )
})

test('the steps wait for every replica of the release before, by name', () => {
  assert.deepEqual(waitsFor(2, leased('0.3.0', '0.2.0', '0.2.1', '0.2.0')), ['host-1 (0.2.0)', 'host-3 (0.2.0)'])
  assert.deepEqual(waitsFor(2, [{ name: 'x', version: null }]), ['x (no release)'])
})

test('the steps wait for nobody on an empty store, on one that only this release uses, and on the newest schema', () => {
  assert.deepEqual(waitsFor(null, []), [])
  assert.deepEqual(waitsFor(2, []), [])
  assert.deepEqual(waitsFor(2, leased('0.3.0', '0.2.1')), [])
  assert.deepEqual(waitsFor(newestSchema, leased('0.2.0')), [])
})

test('a schema from before the release before is not one to run on: it waits for nobody', () => {
  assert.deepEqual(waitsFor(oldestSchema - 1, leased('0.1.0', '0.2.0')), [])
})

test('the schema in use grows, is told once, and says what it has', () => {
  const schema = openSchemaInUse({ to: 2, waitsFor: [] }, silentLog)
  let told = 0
  schema.onUpgraded(() => told++)
  const has = () => [schema.has('key-claim'), schema.has('node'), schema.has('lived')]
  assert.deepEqual(has(), [false, true, false])
  schema.learn(2, ['host (0.2.0)'])
  assert.deepEqual(schema.unfinished(), { schema: 2, newest: newestSchema, waitsFor: ['host (0.2.0)'], failure: null })
  schema.learn(newestSchema)
  schema.learn(2, ['host (0.2.0)'])
  assert.deepEqual([schema.version(), schema.unfinished(), told], [newestSchema, null, 1])
  assert.deepEqual(has(), [true, true, true])
})

/** A database with these replicas, in which a step can fail. */
const setUp = (leads: boolean) => {
  const schema = openSchemaInUse({ to: 2, waitsFor: [] }, silentLog)
  const database = { version: 2, replicas: leased('0.3.0', '0.2.0'), fails: false }
  const seen = { migrated: 0, looked: 0 }
  const upgrade = openUpgrade(
    silentLog,
    {
      async read() {
        seen.looked++
        return { rows: [{ version: database.version, leased: JSON.stringify(database.replicas) }], count: 1 }
      },
    },
    schema,
    { leadership: () => (leads ? { number: 1 } : null) },
    async () => {
      seen.migrated++
      if (database.fails) throw new Error('the lock is held')
      database.version = newestSchema
      return { from: 2, to: newestSchema, waitsFor: [] }
    },
  )
  return { schema, database, seen, upgrade }
}

test('the leader takes the steps when the last replica of the release before has no lease, and then looks no more', async () => {
  const { schema, database, seen, upgrade } = setUp(true)
  await upgrade()
  assert.deepEqual([schema.version(), schema.unfinished()?.waitsFor, seen.migrated], [2, ['host-1 (0.2.0)'], 0])
  database.replicas = leased('0.3.0')
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 1])
  await upgrade()
  assert.deepEqual(seen, { migrated: 1, looked: 2 })
})

test('another replica takes no step, and notices the one of the leader', async () => {
  const { schema, database, seen, upgrade } = setUp(false)
  database.replicas = leased('0.3.0')
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [2, 0])
  database.version = newestSchema
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 0])
})

test('a step that fails is tried again, and not at every look: each try holds up commits', async () => {
  const { schema, database, seen, upgrade } = setUp(true)
  database.replicas = leased('0.3.0')
  database.fails = true
  for (let look = 0; look < 31; look++) await upgrade()
  assert.equal(seen.migrated, 1)
  assert.equal(schema.unfinished()?.failure, 'the lock is held')
  database.fails = false
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 2])
})
