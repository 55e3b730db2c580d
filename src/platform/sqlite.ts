// SQLite as Node bundles it, opened so that only the owner can read the file.

import * as fs from 'node:fs'
import { pathToFileURL } from 'node:url'
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

export type Database = DatabaseSync
export type Statement = StatementSync
export type SqlValue = SQLInputValue

/** `busyMs`: how long a statement waits, blocking, for another process to let go of the file. */
export const openDatabase = (file: string, busyMs: number): Database => {
  ownerOnly(file)
  return new DatabaseSync(file, { timeout: busyMs })
}

/** Reads while another process writes. SQLite leaves its two extra files beside a database that no process has open. */
export const openDatabaseToRead = (file: string, busyMs: number): Database =>
  new DatabaseSync(file, { readOnly: true, timeout: busyMs })

/** A file that no process writes: it is read without any file beside it. */
export const openFinishedDatabase = (file: string): Database => {
  const url = pathToFileURL(file)
  url.searchParams.set('immutable', '1')
  return new DatabaseSync(url, { readOnly: true })
}

const pagesAtOnce = 1000

/**
 * A copy of what the connection sees in its open transaction, whatever others write meanwhile: without one the copying
 * would begin anew with every commit of theirs. The file is new, and only its owner reads it.
 */
export const copyDatabase = async (
  database: Database,
  file: string,
  onProgress: (pages: { readonly done: number; readonly total: number }) => void,
): Promise<void> => {
  if (!database.isTransaction) throw new Error('a copy is made of what a transaction sees')
  fs.closeSync(fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600))
  const progress = ({ totalPages, remainingPages }: { totalPages: number; remainingPages: number }): void =>
    onProgress({ done: totalPages - remainingPages, total: totalPages })
  await backup(database, file, { rate: pagesAtOnce, progress })
}

/** The release the running Node was built with, such as `3.53.4`. */
export const sqliteVersion = (): string => {
  const database = new DatabaseSync(':memory:')
  try {
    return String(database.prepare('SELECT sqlite_version() AS version').get()?.['version'])
  } finally {
    database.close()
  }
}

export type SqliteTrouble =
  | 'unique'
  | 'busy'
  | 'not-a-database'
  /** The disk, or what this user may have of it, is full. Nothing was written. */
  | 'full'
  /** A flush failed: what the system has dropped of it, and whether a later one would say so, is not known. */
  | 'flush'
  | 'corrupt'
  /** A statement does not fit the tables that are there: a mistake of ours, or tables that were changed. */
  | 'schema'
  | 'disk'
  | 'other'

/** SQLITE_FULL; SQLITE_IOERR_WRITE (a quota); SQLITE_IOERR_SHMSIZE and SQLITE_IOERR_SHMMAP (no room for the index of the log). */
const fullCodes: ReadonlySet<number> = new Set([13, 778, 4874, 5386])
/** SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC. */
const flushCodes: ReadonlySet<number> = new Set([1034, 1290])
/** SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN. */
const diskCodes: ReadonlySet<number> = new Set([8, 10, 14])

/** Null: the error did not come from SQLite. */
export const sqliteTrouble = (error: unknown): SqliteTrouble | null => {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null
  // SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_PRIMARYKEY; every other constraint is a mistake of ours.
  if (error.errcode === 2067 || error.errcode === 1555) return 'unique'
  if (fullCodes.has(error.errcode)) return 'full'
  if (flushCodes.has(error.errcode)) return 'flush'
  const primary = error.errcode & 0xff
  if (diskCodes.has(primary)) return 'disk'
  if (primary === 5) return 'busy'
  if (primary === 1) return 'schema'
  return primary === 26 ? 'not-a-database' : primary === 11 ? 'corrupt' : 'other'
}

/** SQLite gives its WAL the mode of the database file, so the file has to have it first. */
const ownerOnly = (file: string): void => {
  try {
    fs.closeSync(fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    // By name: opening and closing the file would drop every lock this process holds on it.
    fs.chmodSync(file, 0o600)
  }
}
