// A store in PostgreSQL, on one connection: for what is done beside its planes, or without them.

import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { pgTrouble, type PgConnection, type PostgresTarget } from '#platform/postgres.ts'
import { systemTimers } from '#platform/timers.ts'
import { isMoved } from '#plane/keys/key-files.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { openPgSql } from '#plane/store/postgres/pg-sql.ts'
import { schemaOf } from '#plane/store/postgres/run-migrations.ts'
import type { Sql } from '#plane/store/sql/sql.ts'
import { CopyRefused } from './copy-refusal.ts'
import { schemaOld } from './open-sqlite.ts'
import type { ReadableStore } from './stored-records.ts'

/** Reading or filling takes as long as it takes; waiting for others does not. */
const settings = { idle_in_transaction_session_timeout: '0', lock_timeout: '5s' }

export const postgresAccess = (target: PostgresTarget): PgAccess =>
  openPgAccess({ clock: systemClock, timers: systemTimers, log: silentLog }, target)

export const connectForCopy = async (access: PgAccess, purpose: string): Promise<PgConnection> => {
  try {
    return await access.connect(purpose, settings)
  } catch (error) {
    if (pgTrouble(error) !== 'refused') throw new StoreFault('PostgreSQL cannot be reached', error)
    throw new StoreRefused(
      'DATABASE_REFUSED',
      `PostgreSQL does not let Muster in: ${error instanceof Error ? error.message : String(error)}`,
      'Check host, database, user, password and TLS: PG* variables or the file named by MUSTER_STORE_FILE',
    )
  }
}

/** Everything in the connection's transaction. */
export const sqlOn = (connection: PgConnection): Sql => {
  const run: PgAccess['read'] = (statement, values) => connection.run(statement, values)
  return openPgSql(systemTimers, { read: run, write: run }, { self: 0 })
}

export const readablePostgres = (connection: PgConnection): ReadableStore => {
  const sql = sqlOn(connection)
  return {
    sql,
    async keys() {
      const rows = await sql.read({ name: 'copy-sealed-keys', text: 'SELECT name, sealed FROM sealed_key' })
      const keys = rows.map((row) => [String(row['name']), String(row['sealed'])] as const)
      return new Map(keys.filter(([name]) => isMoved(name)))
    },
  }
}

/** Throws where there is no schema, an older one, or a newer one. */
export const refuseOtherSchema = async (connection: PgConnection): Promise<void> => {
  const { version, newest } = await schemaOf(connection)
  if (version === null)
    throw new CopyRefused(
      'NO_STORE',
      'there is no store of Muster in this database',
      'Name another database, or bring a domain into this one: muster store copy --from FOLDER --to postgres',
    )
  if (version < newest) throw schemaOld(version, newest)
}

/** One that was killed has a lease for a while. */
export const refuseLeased = async (connection: PgConnection): Promise<void> => {
  const { rows } = await connection.run(leased)
  if (rows.length === 0) return
  throw new CopyRefused(
    'STORE_IN_USE',
    `planes run on this database: ${rows.map((row) => String(row['name'])).join(', ')}`,
    'Stop them first; one that was killed counts as running for 15 seconds more',
  )
}

const leased = {
  name: 'copy-leased',
  text: 'SELECT name FROM replica WHERE expires_at > clock_timestamp() ORDER BY number',
}
