// The schema of a store brought to that of this release, by itself: a plane does the same when it starts, and the one that leads
// when the last plane of the release before has stopped.

import { flushFolder } from '#platform/files.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { openDatabase } from '#platform/sqlite.ts'
import { checkSchema, migrate, newestSchema } from '#plane/store/sqlite/migrations.ts'
import { leasedIn, migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { waitsFor } from '#plane/store/postgres/schema-gate.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { CopyRefused } from './copy-refusal.ts'
import { connectForCopy, postgresAccess } from './open-postgres.ts'
import { databaseFile, lockStopped, openSqliteToRead } from './open-sqlite.ts'

export type Migrated = {
  /** Null: the database was empty. */
  readonly from: number | null
  readonly to: number
}

/** Throws StoreRefused where the schema is newer, or not ours. With `dryRun` it only looks. */
export const migrateStore = async (config: PlaneConfig, dryRun: boolean): Promise<Migrated> =>
  config.store.kind === 'sqlite'
    ? migrateSqlite(config.dataFolder, dryRun)
    : migratePostgres(postgresAccess(config.store.target), dryRun)

const migrateSqlite = (folder: string, dryRun: boolean): Migrated => {
  const looked = openSqliteToRead(folder)
  looked.database.close()
  const done = { from: looked.schema, to: newestSchema }
  if (dryRun) return done
  const lock = lockStopped(folder)
  try {
    const database = openDatabase(databaseFile(folder), 0)
    try {
      checkSchema(database)
      migrate(database)
    } finally {
      database.close()
    }
    flushFolder(folder)
    return done
  } finally {
    lock.release()
  }
}

const migratePostgres = async (access: ReturnType<typeof postgresAccess>, dryRun: boolean): Promise<Migrated> => {
  const connection = await connectForCopy(access, 'store migrate')
  try {
    const { version, newest } = await schemaOf(connection)
    if (version === newest) return { from: version, to: newest }
    const migrated = dryRun ? await wouldMigrate(connection, version, newest) : await migrateDatabase(access)
    if (migrated.to !== newest) throw unfinished(migrated.to, migrated.waitsFor)
    return { from: version, to: migrated.to }
  } finally {
    await connection.end()
  }
}

const wouldMigrate = async (connection: PgConnection, version: number | null, newest: number) => {
  const waiting = version === null ? [] : waitsFor(version, await leasedIn(connection))
  return { to: waiting.length === 0 || version === null ? newest : version, waitsFor: waiting }
}

/** A replica of the release before could not be started again on a newer schema. */
const unfinished = (schema: number, waiting: readonly string[]): CopyRefused =>
  waiting.length === 0
    ? new CopyRefused(
        'UPGRADE_UNFINISHED',
        `the store is still at schema ${schema}: a plane is upgrading it`,
        'Nothing needs to be done; see: muster store status --store postgres',
      )
    : new CopyRefused(
        'UPGRADE_UNFINISHED',
        `the store stays at schema ${schema}: planes of an older release run on it: ${waiting.join(', ')}`,
        'Upgrade or stop them first; the leader then upgrades the schema',
      )
