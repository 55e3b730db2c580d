// SQLite as Node carries it, opened so that nobody but the owner reads the file.

import * as fs from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

export type Database = DatabaseSync
export type Statement = StatementSync
export type SqlValue = SQLInputValue

/** `busyMs`: how long a statement waits, blocking, for another process to let go of the file. */
export const openDatabase = (file: string, busyMs: number): Database => {
  ownerOnly(file)
  return new DatabaseSync(file, { timeout: busyMs })
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

export type SqliteTrouble = 'unique' | 'busy' | 'not-a-database' | 'other'

/** Null: the error did not come from SQLite. */
export const sqliteTrouble = (error: unknown): SqliteTrouble | null => {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null
  // SQLITE_CONSTRAINT_UNIQUE and SQLITE_CONSTRAINT_PRIMARYKEY; every other constraint is a mistake of ours.
  if (error.errcode === 2067 || error.errcode === 1555) return 'unique'
  const primary = error.errcode & 0xff
  return primary === 5 ? 'busy' : primary === 26 ? 'not-a-database' : 'other'
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
