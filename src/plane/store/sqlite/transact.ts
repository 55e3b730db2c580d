import type { Database } from '#platform/sqlite.ts'

/** Runs in one transaction, in one turn. An error leaves nothing written and no transaction open. */
export const transact = <T>(database: Database, run: () => T): T => {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = run()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // A full disk makes SQLite roll back on its own; a lock held by another process does not.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
