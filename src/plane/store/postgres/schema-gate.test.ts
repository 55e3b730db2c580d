import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RowKind } from '#domain/core/change.ts'
import { silentLog } from '#platform/log.ts'
import { musterVersion } from '#platform/this-process.ts'
import { migrations } from './migrations.ts'
import { knowsSchema, openSchemaInUse, openUpgrade, waitsFor, type LeasedRelease } from './schema-gate.ts'
import { kindsSince, newestSchema, oldestSchema, partsSince, releaseOfSchema, type SchemaPart } from './schema-since.ts'

/** The oldest release on whose schema a plane runs, and the one that brought the newest schema. */
const before = releaseOfSchema[oldestSchema]
const newest = releaseOfSchema[newestSchema]

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
  assert.deepEqual(waitsFor(oldestSchema, leased(musterVersion, before, newest, before)), [
    `host-1 (${before})`,
    `host-3 (${before})`,
  ])
  assert.deepEqual(waitsFor(oldestSchema, [{ name: 'x', version: null }]), ['x (no release)'])
})

test('the steps wait for nobody on an empty store, on one that only this release uses, and on the newest schema', () => {
  assert.deepEqual(waitsFor(null, []), [])
  assert.deepEqual(waitsFor(oldestSchema, []), [])
  assert.deepEqual(waitsFor(oldestSchema, leased(musterVersion, newest)), [])
  assert.deepEqual(waitsFor(newestSchema, leased(before)), [])
})

test('a schema from before the release before is not one to run on: it waits for nobody', () => {
  assert.deepEqual(waitsFor(oldestSchema - 1, leased('0.1.0', before)), [])
})

test('the schema in use grows, is told once, and says what it has', () => {
  const schema = openSchemaInUse({ to: oldestSchema, waitsFor: [] }, silentLog)
  const waiting = `host (${before})`
  let told = 0
  schema.onUpgraded(() => told++)
  const places: readonly (readonly [RowKind | SchemaPart, number])[] = [
    ...Object.entries(kindsSince).map(([kind, since]) => [kind as RowKind, since.schema] as const),
    ...Object.entries(partsSince).map(([part, since]) => [part as SchemaPart, since] as const),
  ]
  const lacks = (): readonly string[] => places.map(([place]) => place).filter((place) => !schema.has(place))
  const added = places.filter(([, since]) => since > oldestSchema).map(([place]) => place)
  assert.deepEqual(lacks(), added)
  assert.ok(added.length > 0, 'there is a step to wait for')
  assert.ok(schema.has('node'))
  schema.learn(oldestSchema, [waiting])
  const unfinished = { schema: oldestSchema, newest: newestSchema, waitsFor: [waiting], failure: null }
  assert.deepEqual(schema.unfinished(), unfinished)
  schema.learn(newestSchema)
  schema.learn(oldestSchema, [waiting])
  assert.deepEqual([schema.version(), schema.unfinished(), told], [newestSchema, null, 1])
  assert.deepEqual(lacks(), [])
})

/** A database with these replicas, in which a step can fail. */
const setUp = (leads: boolean) => {
  const schema = openSchemaInUse({ to: oldestSchema, waitsFor: [] }, silentLog)
  const database = { version: oldestSchema, replicas: leased(musterVersion, before), fails: false }
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
      return { from: oldestSchema, to: newestSchema, waitsFor: [] }
    },
  )
  return { schema, database, seen, upgrade }
}

test('the leader takes the steps when the last replica of the release before has no lease, and then looks no more', async () => {
  const { schema, database, seen, upgrade } = setUp(true)
  await upgrade()
  assert.deepEqual(
    [schema.version(), schema.unfinished()?.waitsFor, seen.migrated],
    [oldestSchema, [`host-1 (${before})`], 0],
  )
  database.replicas = leased(musterVersion)
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 1])
  await upgrade()
  assert.deepEqual(seen, { migrated: 1, looked: 2 })
})

test('another replica takes no step, and notices the one of the leader', async () => {
  const { schema, database, seen, upgrade } = setUp(false)
  database.replicas = leased(musterVersion)
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [oldestSchema, 0])
  database.version = newestSchema
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 0])
})

test('a step that fails is tried again, and not at every look: each try holds up commits', async () => {
  const { schema, database, seen, upgrade } = setUp(true)
  database.replicas = leased(musterVersion)
  database.fails = true
  for (let look = 0; look < 31; look++) await upgrade()
  assert.equal(seen.migrated, 1)
  assert.equal(schema.unfinished()?.failure, 'the lock is held')
  database.fails = false
  await upgrade()
  assert.deepEqual([schema.version(), seen.migrated], [newestSchema, 2])
})
