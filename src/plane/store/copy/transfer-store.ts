// Which store a transfer is about, opened as it needs it.

import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { pgTrouble, type PgSession, type PostgresTarget } from '#platform/postgres.ts'
import { systemTimers } from '#platform/timers.ts'
import { newestSchema } from '#plane/store/sqlite/migrations.ts'
import { migrations } from '#plane/store/postgres/migrations.ts'
import { openPgAccess, type PgAccess } from '#plane/store/postgres/pg-access.ts'
import { migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { currentSchema, openPostgresSource, transferSettings } from './postgres-place.ts'
import { openPostgresSink } from './postgres-sink.ts'
import { openSqliteSource } from './sqlite-place.ts'
import { openSqliteSink } from './sqlite-sink.ts'
import type { ReadableStore } from './stored-records.ts'
import type { TransferSink } from './transfer-sink.ts'
import type { PlaneConfig } from '#plane/config/config.ts'

/** The newest schema this release writes, by store. */
export const newestSchemas = { sqlite: newestSchema, postgres: migrations.length } as const

export const postgresAccess = (target: PostgresTarget): PgAccess =>
  openPgAccess({ target, log: silentLog, timers: systemTimers, clock: systemClock })

export const connectForTransfer = async (access: PgAccess, purpose: string): Promise<PgSession> => {
  try {
    return await access.connect(purpose, transferSettings)
  } catch (error) {
    if (pgTrouble(error) !== 'refused') throw new StoreFault('PostgreSQL cannot be reached', error)
    throw new StoreRefused(
      'DATABASE_REFUSED',
      `PostgreSQL does not let Muster in: ${error instanceof Error ? error.message : String(error)}`,
      'Check host, database, user, password and TLS: PG* variables or the file named by MUSTER_STORE_FILE',
    )
  }
}

/** Nobody writes to it as long as it is open. */
export const openSource = async (
  config: PlaneConfig,
): Promise<ReadableStore & { readonly schema: number; close(): Promise<void> }> => {
  if (config.store.kind === 'sqlite') return openSqliteSource(config.dataFolder)
  return openPostgresSource(await connectForTransfer(postgresAccess(config.store.target), 'store export'))
}

/** Empty, and nobody else's as long as it is open. A database without a schema is given one first. */
export const openSink = async (config: PlaneConfig, keys: ReadonlyMap<string, string>): Promise<TransferSink> => {
  if (config.store.kind === 'sqlite') return openSqliteSink(config.dataFolder, keys)
  const access = postgresAccess(config.store.target)
  const session = await connectForTransfer(access, 'store import')
  try {
    if ((await schemaOf(session)).version === null) await migrateDatabase(access)
    await currentSchema(session)
  } catch (error) {
    await session.end()
    throw error
  }
  return openPostgresSink(session, keys)
}
