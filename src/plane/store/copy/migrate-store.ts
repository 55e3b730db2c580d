// The schema of a store brought to that of this release, by itself: a plane does the same when it starts.

import { flushFolder } from '#platform/files.ts'
import { openDatabase } from '#platform/sqlite.ts'
import { checkSchema, migrate, newestSchema } from '#plane/store/sqlite/migrations.ts'
import { migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
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
  const session = await connectForCopy(access, 'store migrate')
  try {
    const { version, newest } = await schemaOf(session)
    if (!dryRun && version !== newest) await migrateDatabase(access)
    return { from: version, to: newest }
  } finally {
    await session.end()
  }
}
