// The embedded store of a data folder that no plane runs on.

import * as path from 'node:path'
import { faultOfPrivateFolder, type FolderLock } from '#platform/private-folder.ts'
import { openDatabaseToRead, sqliteTrouble, type Database, type Statement } from '#platform/sqlite.ts'
import { pathExists } from '#platform/paths.ts'
import { lockDataFolder } from '#plane/store/sqlite/data-folder-lock.ts'
import { checkSchema, newestSchema, schemaVersion } from '#plane/store/sqlite/migrations.ts'
import { notAStore, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { isMoved, keysInFolder } from '#plane/keys/key-files.ts'
import type { Dialect, ReadableStore } from './stored-records.ts'
import { TransferRefused } from './transfer-errors.ts'

/** A plane may hold the file for a moment. */
const busyMs = 5000

export const databaseFile = (folder: string): string => path.join(folder, 'muster.db')

const dialect: Dialect = {
  store: 'sqlite',
  tokenOrder: 'rowid',
  chains: 'SELECT chain, domain, sequence, hash, signature, key_id FROM journal_base',
  chainColumn: false,
  heads: null,
}

export const readableSqlite = (database: Database, keys: ReadableStore['keys']): ReadableStore => {
  const statements = new Map<string, Statement>()
  const prepared = (text: string): Statement => {
    const known = statements.get(text) ?? database.prepare(text)
    statements.set(text, known)
    return known
  }
  return {
    dialect,
    keys,
    query: async (text, values) => prepared(text).all(...values),
  }
}

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

const openOrRefuse = (file: string): Database => {
  try {
    return openDatabaseToRead(file, busyMs)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new TransferRefused('FILE_UNUSABLE', `${file} cannot be opened: ${why}`, asItsUser)
  }
}

const asItsUser = 'Run this as the user the plane runs as, on a folder that only that user can change (chmod 700)'

/** Nobody else writes as long as it is open. */
export const openSqliteSource = (
  folder: string,
): ReadableStore & { readonly schema: number; close(): Promise<void> } => {
  if (!pathExists(databaseFile(folder))) throw noStore(folder)
  const lock = lockStopped(folder)
  try {
    const { database, schema } = openSqliteToRead(folder)
    if (schema < newestSchema) {
      database.close()
      throw schemaOld(schema, newestSchema)
    }
    const keys = new Map([...keysInFolder(folder)].filter(([name]) => isMoved(name)))
    return {
      ...readableSqlite(database, async () => keys),
      schema,
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

/** The folder is there, and only its owner changes it. */
export const lockStopped = (folder: string): FolderLock => {
  const fault = faultOfPrivateFolder(folder)
  if (fault !== null) throw new TransferRefused('FILE_UNUSABLE', `the data folder ${folder} ${fault}`, asItsUser)
  try {
    return lockDataFolder(folder)
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error
    throw new TransferRefused('STORE_IN_USE', error.message, 'Stop that plane first')
  }
}

const noStore = (folder: string): TransferRefused =>
  new TransferRefused(
    'NO_STORE',
    `there is no store in the data folder ${folder}`,
    'Name its data folder: --data FOLDER; or, where it lies in PostgreSQL: --store postgres',
  )

export const schemaOld = (schema: number, newest: number): TransferRefused =>
  new TransferRefused(
    'SCHEMA_OLD',
    `the store has schema ${schema}, and this release of Muster writes ${newest}`,
    'Bring it up to date first: muster store migrate',
  )
