// Where a copy goes: an empty store. Nothing of it is visible before it is committed, and it can be read back before.

import * as path from 'node:path'
import { flushFolder, makeFolder } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { pathExists, removeFolder, renamePath } from '#platform/paths.ts'
import type { PgConnection } from '#platform/postgres.ts'
import { openDatabase, type Database } from '#platform/sqlite.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { keysInFolder, writeKeyFiles } from '#plane/keys/key-files.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { migrateDatabase, schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { migrate } from '#plane/store/sqlite/migrations.ts'
import { openSqliteSql } from '#plane/store/sqlite/sqlite-sql.ts'
import { CopyRefused } from './copy-refusal.ts'
import { writeManifest, type Manifest } from './manifest.ts'
import {
  connectForCopy,
  postgresAccess,
  readablePostgres,
  refuseLeased,
  refuseOtherSchema,
  sqlOn,
} from './open-postgres.ts'
import { databaseFile, lockStopped } from './open-sqlite.ts'
import type { StoreRecord } from './store-record.ts'
import { copiedTables, type ReadableStore } from './stored-records.ts'
import { oneJournal, openRecordWriter, sharedJournal, type RecordWriter } from './write-records.ts'

export type Destination = ReadableStore & {
  /** Keys were given when it was opened; those among the records are passed over. */
  add(records: readonly StoreRecord[]): Promise<void>
  /** After the last record, and before it is read back. */
  endChains(): Promise<void>
  /** Durable when it resolves. */
  commit(manifest: Manifest): Promise<void>
  /** As if nothing had been tried. Does nothing after `commit`. */
  abandon(): Promise<void>
}

export type Copied = {
  /** Sealed, by name. */
  readonly keys: ReadonlyMap<string, string>
  /** The chain that a store of one writer goes on with; null: there is none. */
  readonly continued: string | null
  /** Further files of a data folder, by name. */
  readonly secrets: ReadonlyMap<string, string>
}

/** Throws CopyRefused where something is there already; then nothing was touched. */
export const openDestination = (config: PlaneConfig, copied: Copied): Promise<Destination> =>
  config.store.kind === 'sqlite'
    ? openDataFolder(config.dataFolder, copied)
    : openPostgres(postgresAccess(config.store.target), copied)

/**
 * The database is made under another name and renamed last, after the keys: a key without a row is harmless, a row without its
 * key is not, and no plane starts on a folder that has keys and no database.
 */
const openDataFolder = async (folder: string, copied: Copied): Promise<Destination> => {
  const { keys, continued, secrets } = copied
  makeFolder(folder, 0o700)
  const lock = lockStopped(folder)
  const beside = path.join(folder, 'muster.db.importing')
  const removeBeside = (): void => ['', '-journal'].forEach((end) => removeFolder(beside + end))
  let database: Database
  try {
    refuseFullFolder(folder, keys)
    removeBeside()
    database = openDatabase(beside, 0)
    database.exec('PRAGMA cache_size = -65536')
    migrate(database)
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    lock.release()
    throw error
  }
  const sql = openSqliteSql(database, () => {})
  let open = true
  return {
    sql,
    keys: async () => keys,
    ...openRecordWriter(sql, oneJournal(continued)),
    async commit(manifest) {
      database.exec('COMMIT')
      database.close()
      writeKeyFiles(folder, keys)
      for (const [name, text] of secrets) createFile(path.join(folder, name), text, 0o600)
      writeManifest(folder, manifest)
      renamePath(beside, databaseFile(folder))
      flushFolder(folder)
      open = false
      lock.release()
    },
    async abandon() {
      if (!open) return
      open = false
      if (database.isOpen) database.close()
      removeBeside()
      lock.release()
    },
  }
}

/** The keys of this very copy may be there: then an attempt was cut short before the database had its name. */
const refuseFullFolder = (folder: string, keys: ReadonlyMap<string, string>): void => {
  const stranger = [...keysInFolder(folder)].find(([name, sealed]) => keys.get(name) !== sealed)
  if (!pathExists(databaseFile(folder)) && stranger === undefined) return
  const what = stranger === undefined ? 'a store' : 'keys of another store'
  throw new CopyRefused(
    'STORE_NOT_EMPTY',
    `the data folder ${folder} holds ${what} already`,
    'Name a folder that is empty, or does not exist',
  )
}

/** Nothing is in any of them, and as long as they are locked no plane begins. */
const guarded = ['domain', 'replica', 'chain', 'sealed_key']

/** In one transaction. A database without a schema is given one first. */
const openPostgres = async (access: ReturnType<typeof postgresAccess>, { keys }: Copied): Promise<Destination> => {
  const connection = await connectForCopy(access, 'store copy')
  let writer: RecordWriter
  try {
    if ((await schemaOf(connection)).version === null) await migrateDatabase(access)
    await refuseOtherSchema(connection)
    await refuseLeased(connection)
    await connection.exec(`BEGIN; LOCK TABLE ${guarded.join(', ')} IN EXCLUSIVE MODE`)
    await refuseLeased(connection)
    await refuseFullDatabase(connection)
    writer = openRecordWriter(sqlOn(connection), sharedJournal)
    await writer.addKeys(keys)
  } catch (error) {
    await connection.end()
    throw error
  }
  return {
    ...readablePostgres(connection),
    ...writer,
    async commit() {
      // These tables have no statistics yet, and the first plane must not plan its queries without them.
      await connection.exec(`ANALYZE ${['chain', 'journal', ...copiedTables.map(([, table]) => table)].join(', ')}`)
      await commitForCertain(connection)
      await connection.end()
    },
    async abandon() {
      if (!connection.ended) await connection.end()
    },
  }
}

/** A warning is all that PostgreSQL says when a commit was not carried to its standby. */
const commitForCertain = async (connection: PgConnection): Promise<void> => {
  const warnings: string[] = []
  connection.onWarning((message) => warnings.push(message))
  const unsure = 'it is not known whether everything was written; see: muster store status --store postgres'
  try {
    await connection.exec('COMMIT')
  } catch (error) {
    throw new StoreFault(unsure, error)
  }
  if (warnings.length > 0) throw new StoreFault(unsure, warnings.join(' '))
}

const refuseFullDatabase = async (connection: PgConnection): Promise<void> => {
  const tables = ['chain', 'journal', 'sealed_key', ...copiedTables.map(([, table]) => table)]
  const { rows } = await connection.run({
    name: 'copy-full',
    text: `SELECT ${tables.map((table) => `EXISTS (SELECT FROM ${table}) AS ${table}`).join(', ')}`,
  })
  const full = tables.filter((table) => rows[0]?.[table] !== false)
  if (full.length === 0) return
  throw new CopyRefused(
    'STORE_NOT_EMPTY',
    `the database holds a store already: there is something in ${full.join(', ')}`,
    'Name an empty database',
  )
}
