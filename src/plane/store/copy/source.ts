// Where a copy is made from: a store that no plane changes meanwhile, or one moment of it.

import { pathExists } from '#platform/paths.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { connectForCopy, postgresAccess, readablePostgres, refuseLeased, refuseOtherSchema } from './open-postgres.ts'
import { databaseFile, lockStopped, movedKeysIn, noStore, openCurrentSqlite, readableSqlite } from './open-sqlite.ts'
import type { ReadableStore } from './stored-records.ts'

export type Source = ReadableStore & { close(): Promise<void> }

/** No plane writes to it as long as it is open: a domain that is moved must not go on where it was. */
export const openStoppedStore = async (config: PlaneConfig): Promise<Source> =>
  config.store.kind === 'sqlite' ? openStoppedSqlite(config.dataFolder) : openPostgres(config, 'stopped')

/** A snapshot of a PostgreSQL store while its replicas commit. */
export const openPostgresMoment = (config: PlaneConfig): Promise<Source> => openPostgres(config, 'running')

const openStoppedSqlite = (folder: string): Source => {
  if (!pathExists(databaseFile(folder))) throw noStore(folder)
  const lock = lockStopped(folder)
  try {
    const database = openCurrentSqlite(folder)
    return {
      ...readableSqlite(database, movedKeysIn(folder)),
      async close() {
        database.close()
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

const openPostgres = async ({ store }: PlaneConfig, planes: 'stopped' | 'running'): Promise<Source> => {
  if (store.kind !== 'postgres') throw new Error('it is not a store in PostgreSQL')
  const connection = await connectForCopy(postgresAccess(store.target), 'store copy')
  try {
    await refuseOtherSchema(connection)
    if (planes === 'stopped') {
      await refuseLeased(connection)
      // The lock comes before the first look, so that no replica gets a lease between the two.
      await connection.exec('BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE replica IN SHARE MODE')
      await refuseLeased(connection)
    } else {
      await connection.exec('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    }
    return { ...readablePostgres(connection), close: () => connection.end() }
  } catch (error) {
    await connection.end()
    throw error
  }
}
