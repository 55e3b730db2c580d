// Brings a database to the schema of this release, unless replicas of the release before have a lease. Of all replicas that start
// at once one does it, and the others wait for it; each step is taken whole or not at all.

import { pgTrouble, type PgConnection, type Prepared } from '#platform/postgres.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { claimsOnServed, servedEntryType } from '#plane/store/sql/names-served-before.ts'
import { buildIndexes } from './build-indexes.ts'
import { migrations } from './migrations.ts'
import type { PgAccess } from './pg-access.ts'
import { waitsFor, type LeasedRelease } from './schema-gate.ts'
import { oldestSchema } from './schema-since.ts'

export type SchemaVersion = {
  /** Null: the database is empty. */
  readonly version: number | null
  /** The newest this release knows. */
  readonly newest: number
}

/** "MSTR": distinguishes our table from another program's of the same name. */
const mark = 0x4d535452
/**
 * Any number that has no other use in this database. Held by a migration from its first look at the schema, and shared by a
 * replica that takes a lease (lease.ts).
 */
export const migrationLock = 0x4d535452_01
/** Held by a step, and shared by every group of commits on a schema that is not the newest (lock-rows.ts). */
export const schemaLock = 0x4d535452_03
/** How long a migration waits: for locks that others hold, and for transactions that are in the way of its indexes. */
export type Patience = { readonly locks: string; readonly readers: string }
const usualPatience: Patience = { locks: '60s', readers: '60s' }
/** While a step waits for a table, all others wait behind it, renewals of leases among them; without leases nothing does. */
const waitBesideLeases = '2s'
/** A replica of 0.2 that starts looks at the schema, and takes its lease within this time. Later ones do both under a lock. */
const startingMs = 1000
const oldestServer = 140000

export type Migrated = {
  /** Null: the database was empty. */
  readonly from: number | null
  /** The one before also where another replica is at it: then a plane runs on that one until it is done. */
  readonly to: number
  /** Replicas of the release before, for which it has stayed as it was. */
  readonly waitsFor: readonly string[]
}

/**
 * Up to the newest schema, or not at all while replicas of the release before have a lease. Throws StoreRefused where the database is
 * another's, or of a newer release; StoreFault where the world is in the way.
 */
export const migrateDatabase = async (
  access: Pick<PgAccess, 'connect'>,
  patience: Patience = usualPatience,
): Promise<Migrated> => {
  const connection = await access.connect('migrate', { lock_timeout: patience.locks }).catch(faultOrRefusal)
  try {
    const prepared = await prepareStep(connection, patience)
    if (prepared !== null) return prepared
    await connection.run(takeLock, [migrationLock])
    const { version, newest } = await schemaOf(connection)
    const from = version
    if (version === newest) return { from, to: newest, waitsFor: [] }
    let within = patience.locks
    if (version !== null) {
      const leased = await leasedIn(connection)
      if (leased.length > 0) within = waitBesideLeases
      const waiting = waitsFor(version, leased)
      if (waiting.length > 0) return { from, to: version, waitsFor: waiting }
      await connection.run(pause, [startingMs / 1000])
      const late = waitsFor(version, await endCommits(connection, within))
      if (late.length > 0) return { from, to: version, waitsFor: late }
    }
    for (let step = version ?? 0; step < migrations.length; step++) await takeStep(connection, step, within)
    return { from, to: newest, waitsFor: [] }
  } catch (error) {
    if (pgTrouble(error) === 'refused') throw mayNot(error)
    throw error instanceof StoreRefused ? error : new StoreFault('the schema could not be made', error)
  } finally {
    // The lock goes with its connection.
    await connection.end()
  }
}

/**
 * What may take long, before any lock is taken that others wait for: a replica can start meanwhile. Returns the outcome where that
 * is known by now; null: the steps can be taken. On a schema that no plane runs on nothing is held up by the step itself.
 */
const prepareStep = async (connection: PgConnection, { locks, readers }: Patience): Promise<Migrated | null> => {
  const { version, newest } = await schemaOf(connection)
  if (version === null || version < oldestSchema || version === newest) return null
  // Another replica is between two steps, the first ones of an empty database among them, and makes the same indexes in one.
  if ((await connection.run(askLock, [migrationLock])).rows[0]?.['held'] === true) return null
  const waiting = waitsFor(version, await leasedIn(connection))
  if (waiting.length > 0) return { from: version, to: version, waitsFor: waiting }
  if ((await buildIndexes(connection, readers)) === 'busy') return { from: version, to: version, waitsFor: [] }
  await connection.exec(`SET lock_timeout = '${locks}'`)
  return null
}

/** Looks without touching. Throws StoreRefused as above. */
export const schemaOf = async (connection: PgConnection): Promise<SchemaVersion> => {
  const newest = migrations.length
  const { rows } = await connection.run(askDatabase)
  const found = rows[0] as { ours: boolean; tables: number; encoding: string; release: number }
  if (found.release < oldestServer)
    throw new StoreRefused(
      'POSTGRES_TOO_OLD',
      `the server is of release ${Math.floor(found.release / 10000)}; Muster needs ${oldestServer / 10000} or newer`,
      'Upgrade PostgreSQL',
    )
  if (found.encoding !== 'UTF8') throw notOurs(`its encoding is ${found.encoding}, not UTF8`)
  if (found.ours) return { version: await versionIn(connection, newest), newest }
  if (found.tables > 0) throw notOurs('another program has tables in it')
  return { version: null, newest }
}

const versionIn = async (connection: PgConnection, newest: number): Promise<number> => {
  const { rows } = await connection.run(askVersion)
  const known = rows.length === 1 ? (JSON.parse(String(rows[0]?.['row'])) as Record<string, unknown>) : {}
  const { application, version } = known
  if (application !== mark || typeof version !== 'number')
    throw notOurs('another program has a table muster_schema in it')
  if (version > newest)
    throw new StoreRefused(
      'SCHEMA_TOO_NEW',
      `the store has schema ${version}; this release of Muster knows schemas up to ${newest}`,
      'Run the newer release that wrote it, or restore the copy made before the upgrade',
    )
  return version
}

/** Replicas with a lease. There is a schema. */
export const leasedIn = async (connection: Pick<PgConnection, 'run'>): Promise<readonly LeasedRelease[]> => {
  const { rows } = await connection.run(askLeased)
  return rows as unknown as readonly LeasedRelease[]
}

/**
 * Waits until every group of commits has ended that has begun under a lease, and returns who has a lease then. A replica without one
 * begins no other: each group locks its lease first. So nothing of a replica whose lease has ended is committed after a step. The lock
 * is the one that a step needs in the end: a reader of the table (pg_dump) is met here, before any commit waits for the step.
 */
const endCommits = async (connection: PgConnection, within: string): Promise<readonly LeasedRelease[]> => {
  try {
    await connection.exec(`BEGIN; SET LOCAL lock_timeout = '${within}'; LOCK TABLE replica IN ACCESS EXCLUSIVE MODE`)
    const leased = await leasedIn(connection)
    await connection.exec('COMMIT')
    return leased
  } catch (error) {
    await connection.exec('ROLLBACK').catch(() => {})
    throw error
  }
}

const takeStep = async (connection: PgConnection, step: number, within: string): Promise<void> => {
  const record =
    step === 0
      ? `CREATE TABLE muster_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), application BIGINT NOT NULL,
           version INTEGER NOT NULL);
         INSERT INTO muster_schema VALUES (1, ${mark}, 1);`
      : `UPDATE muster_schema SET version = ${step + 1} WHERE version = ${step};`
  const begin = `BEGIN; SET LOCAL lock_timeout = '${within}'; SELECT pg_advisory_xact_lock(${schemaLock});`
  try {
    await connection.exec(`${begin} ${migrations[step] as string}`)
    await alsoDone[step + 1]?.(connection)
    await connection.exec(`${record} COMMIT`)
  } catch (error) {
    // In vain where the connection is gone, and then the server does it.
    await connection.exec('ROLLBACK').catch(() => {})
    throw error
  }
}

/** What a step does besides its statements, in the same transaction; by the schema that it makes. */
const alsoDone: Readonly<Record<number, (connection: PgConnection) => Promise<void>>> = {
  // Every name that a plane has served is its own, also one that a plane on schema 3 has served until now.
  async 4(connection) {
    const { rows } = await connection.run(askServed, [servedEntryType])
    const [now] = (await connection.run(askNow)).rows
    const claims = claimsOnServed(
      rows.map((row) => String(row['bytes'])),
      Number(now?.['ms']),
    )
    const values = [claims.map(({ key }) => key), claims.map(({ doc }) => doc)]
    await connection.run(insertServed, values)
  },
}

const notOurs = (why: string): StoreRefused =>
  new StoreRefused(
    'NOT_A_STORE',
    `the database is not a store of Muster: ${why}`,
    'Make an empty database (ENCODING UTF8) that belongs to the user Muster connects as, and name that one',
  )

const mayNot = (error: unknown): StoreRefused =>
  new StoreRefused(
    'DATABASE_REFUSED',
    `the schema could not be made: ${error instanceof Error ? error.message : String(error)}`,
    'Let the database belong to the user Muster connects as: ALTER DATABASE name OWNER TO user',
  )

const faultOrRefusal = (error: unknown): never => {
  if (pgTrouble(error) !== 'refused') throw new StoreFault('the store does not open', error)
  throw new StoreRefused(
    'DATABASE_REFUSED',
    `PostgreSQL does not let Muster in: ${error instanceof Error ? error.message : String(error)}`,
    'Check host, database, user, password and TLS: PG* variables or the file named by MUSTER_STORE_FILE',
  )
}

const askServed: Prepared = { name: 'migration-served', text: 'SELECT bytes FROM journal WHERE type = $1' }

const askNow: Prepared = {
  name: 'migration-now',
  text: 'SELECT (extract(epoch FROM now()) * 1000)::bigint AS ms',
}

const insertServed: Prepared = {
  name: 'migration-names',
  text: `INSERT INTO name_claim (key, version, doc, node, holder)
    SELECT key, 1, doc, NULL, 'plane' FROM unnest($1::text[], $2::text[]) AS claim (key, doc)`,
}

const askLeased: Prepared = {
  name: 'migration-leased',
  text: 'SELECT name, version FROM replica WHERE expires_at > clock_timestamp() ORDER BY number',
}

const pause: Prepared = { name: 'migration-pause', text: 'SELECT pg_sleep($1::float8)' }

const takeLock: Prepared = { name: 'migration-lock', text: 'SELECT pg_advisory_lock($1::bigint)' }

/** Whether steps are being taken. A replica that takes its lease has the same lock for a moment, shared. */
const askLock: Prepared = {
  name: 'migration-lock-held',
  text: `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = ($1::bigint >> 32)::oid AND objid = ($1::bigint & 4294967295)::oid AND objsubid = 1) AS held`,
}

/** Other schemas may belong to others, and extensions bring tables of their own. */
const askDatabase: Prepared = {
  name: 'ask-database',
  text: `SELECT to_regclass('muster_schema') IS NOT NULL AS ours,
      current_setting('server_encoding') AS encoding, current_setting('server_version_num')::int AS release,
      (SELECT count(*) FROM pg_class AS table_ JOIN pg_namespace AS schema_ ON schema_.oid = table_.relnamespace
       WHERE schema_.nspname = current_schema() AND table_.relkind IN ('r', 'p', 'f') AND NOT EXISTS
         (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = table_.oid AND deptype = 'e')) AS tables`,
}

const askVersion: Prepared = {
  name: 'ask-version',
  text: 'SELECT to_json(found)::text AS row FROM muster_schema AS found',
}
