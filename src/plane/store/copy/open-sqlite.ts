// The embedded store of a data folder: for what is done beside its plane, or without it.

import * as path from 'node:path'
import { faultOfPrivateFolder } from '#platform/private-folder.ts'
import type { FolderLock } from '#platform/sqlite-lock.ts'
import { openDatabaseToRead, sqliteTrouble, type Database } from '#platform/sqlite.ts'
import { pathExists } from '#platform/paths.ts'
import { lockDataFolder } from '#plane/store/sqlite/data-folder-lock.ts'
import { checkSchema, newestSchema, schemaVersion } from '#plane/store/sqlite/migrations.ts'
import { openSqliteSql } from '#plane/store/sqlite/sqlite-sql.ts'
import { notAStore, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { isMoved, keysInFolder } from '#plane/keys/key-files.ts'
import { CopyRefused } from './copy-refusal.ts'
import type { ReadableStore } from './stored-records.ts'

/** A plane may hold the file for a moment. */
const busyMs = 5000

export const databaseFile = (folder: string): string => path.join(folder, 'muster.db')

export const movedKeysIn = (folder: string): ReadonlyMap<string, string> =>
  new Map([...keysInFolder(folder)].filter(([name]) => isMoved(name)))

export const readableSqlite = (database: Database, keys: ReadonlyMap<string, string>): ReadableStore => ({
  sql: openSqliteSql(database, () => {}),
  keys: async () => keys,
})

export type OpenedSqlite = { readonly database: Database; readonly schema: number }

/** Beside a plane, or without one; takes no lock. */
export const openSqliteToRead = (folder: string): OpenedSqlite => {
  const file = databaseFile(folder)
  if (!pathExists(file)) throw noStore(folder)
  const database = openOrRefuse(file)
  try {
    checkSchema(database)
    return { database, schema: schemaVersion(database) }
  } catch (error) {
    database.close()
    throw sqliteTrouble(error) === 'not-a-database' ? notAStore('it is not a SQLite database') : error
  }
}

/** The same, of the schema that this release writes. */
export const openCurrentSqlite = (folder: string): Database => {
  const { database, schema } = openSqliteToRead(folder)
  if (schema === newestSchema) return database
  database.close()
  throw schemaOld(schema, newestSchema)
}

const openOrRefuse = (file: string): Database => {
  try {
    return openDatabaseToRead(file, busyMs)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CopyRefused('FILE_UNUSABLE', `${file} cannot be opened: ${why}`, asItsUser)
  }
}

const asItsUser = 'Run this as the user the plane runs as, on a folder that only that user can change (chmod 700)'

/** The folder is there, and only its owner changes it. */
export const lockStopped = (folder: string): FolderLock => {
  const fault = faultOfPrivateFolder(folder)
  if (fault !== null) throw new CopyRefused('FILE_UNUSABLE', `the data folder ${folder} ${fault}`, asItsUser)
  try {
    return lockDataFolder(folder)
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error
    throw new CopyRefused('STORE_IN_USE', error.message, 'Stop that plane first')
  }
}

export const noStore = (folder: string): CopyRefused =>
  new CopyRefused(
    'NO_STORE',
    `there is no store in the data folder ${folder}`,
    'Name its data folder: --data FOLDER; or, where it lies in PostgreSQL: --store postgres',
  )

export const schemaOld = (schema: number, newest: number): CopyRefused =>
  new CopyRefused(
    'SCHEMA_OLD',
    `the store has schema ${schema}, and this release of Muster writes ${newest}`,
    'Bring it up to date first: muster store migrate',
  )
