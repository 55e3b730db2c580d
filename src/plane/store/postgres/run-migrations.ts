// Brings a database to the schema of this release. Of all replicas that start at once one does it, and the others wait
// for it; each step is taken whole or not at all.

import { pgTrouble, type PgSession, type Prepared } from '#platform/postgres.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { migrations } from './migrations.ts'
import type { PgAccess } from './pg-access.ts'

export type SchemaVersion = {
  /** Null: the database is empty. */
  readonly version: number | null
  /** The newest this release knows. */
  readonly newest: number
}

/** "MSTR": tells our table from another program's of the same name. */
const mark = 0x4d535452
/** Of session locks; any number will do that nobody else in this database uses. */
const migrationLock = 0x4d535452_01
const waitForOthers = '60s'
const oldestServer = 140000

/** Throws StoreRefused where the database is another's, or of a newer release; StoreFault where the world is in the way. */
export const migrateDatabase = async (access: Pick<PgAccess, 'connect'>): Promise<void> => {
  const session = await access.connect('migrate', { lock_timeout: waitForOthers }).catch(faultOrRefusal)
  try {
    await session.run(takeLock, [migrationLock])
    const { version } = await schemaOf(session)
    for (let step = version ?? 0; step < migrations.length; step++) await takeStep(session, step)
  } catch (error) {
    if (pgTrouble(error) === 'refused') throw mayNot(error)
    throw error instanceof StoreRefused ? error : new StoreFault('the schema could not be made', error)
  } finally {
    // The lock goes with its session.
    await session.end()
  }
}

/** Looks without touching. Throws StoreRefused as above. */
export const schemaOf = async (session: PgSession): Promise<SchemaVersion> => {
  const newest = migrations.length
  const { rows } = await session.run(askDatabase)
  const found = rows[0] as { ours: boolean; tables: number; encoding: string; release: number }
  if (found.release < oldestServer)
    throw new StoreRefused(
      'POSTGRES_TOO_OLD',
      `the server is of release ${Math.floor(found.release / 10000)}; Muster needs ${oldestServer / 10000} or newer`,
      'Upgrade PostgreSQL',
    )
  if (found.encoding !== 'UTF8') throw notOurs(`its encoding is ${found.encoding}, not UTF8`)
  if (found.ours) return { version: await versionIn(session, newest), newest }
  if (found.tables > 0) throw notOurs('another program has tables in it')
  return { version: null, newest }
}

const versionIn = async (session: PgSession, newest: number): Promise<number> => {
  const { rows } = await session.run(askVersion)
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

const takeStep = async (session: PgSession, step: number): Promise<void> => {
  const record =
    step === 0
      ? `CREATE TABLE muster_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), application BIGINT NOT NULL,
           version INTEGER NOT NULL);
         INSERT INTO muster_schema VALUES (1, ${mark}, 1);`
      : `UPDATE muster_schema SET version = ${step + 1} WHERE version = ${step};`
  try {
    await session.exec(`BEGIN; ${migrations[step] as string} ${record} COMMIT`)
  } catch (error) {
    // In vain where the connection is gone, and then the server does it.
    await session.exec('ROLLBACK').catch(() => {})
    throw error
  }
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

const takeLock: Prepared = { name: 'migration-lock', text: 'SELECT pg_advisory_lock($1::bigint)' }

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
