// The SQL that both stores speak, on SQLite. Everything runs in the turn of its call, between two groups of commits: it
// sees what is committed and nothing else.

import type { Database, SqlValue as SqliteValue, Statement } from '#platform/sqlite.ts'
import { decodeRow } from '#plane/store/commit/row-tables.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Dialect, Insertion, Sql, SqlStatement, SqlValue } from '#plane/store/sql/sql.ts'
import { documentText } from './migrations.ts'
import { transact } from './transact.ts'

const dialect: Dialect = {
  isAmong: (column, place) => `${column} IN (SELECT value FROM json_each(${place}))`,
  ifUnlocked: '',
  // There is one writer, and what it sees last is the newest.
  newerTime: (given) => given,
  tokenOrder: 'rowid',
  entries: 'every_entry',
  chainsWithoutRow: {
    name: 'journal-chains-without-row',
    // From one chain to the next, without reading every entry.
    text: `WITH RECURSIVE found (chain) AS (
        SELECT min(chain) FROM closed_entry
        UNION ALL SELECT (SELECT min(chain) FROM closed_entry WHERE chain > found.chain) FROM found WHERE chain IS NOT NULL)
      SELECT chain FROM found WHERE chain IS NOT NULL AND chain NOT IN (SELECT chain FROM closed_chain)
      UNION ALL SELECT NULL WHERE EXISTS (SELECT 1 FROM journal) AND NOT EXISTS (SELECT 1 FROM journal_base)`,
  },
  inDocument: documentText,
  decode: decodeRow,
  // The steps have written it into every row.
  whole: (_kind, document) => document,
}

/** `refuseWrite` throws while nothing but commits may be written. */
export const openSqliteSql = (database: Database, refuseWrite: () => void): Sql => {
  const statements = new Map<string, Statement>()
  const prepared = ({ name, text }: SqlStatement): Statement => {
    const known = statements.get(name) ?? database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
    statements.set(name, known)
    return known
  }

  const read: Sql['read'] = async (statement, values = []) => {
    try {
      return prepared(statement).all(...values.map(bound))
    } catch (error) {
      throw new StoreFault('the store cannot be read', error)
    }
  }
  const writing = <T>(run: () => T): T => {
    refuseWrite()
    try {
      // A copy that is being made has its own transaction around all of it.
      return database.isTransaction ? run() : transact(database, run)
    } catch (error) {
      throw new StoreFault('the store cannot be written to', error)
    }
  }

  const write: Sql['write'] = async (statement, values = []) =>
    writing(() => Number(prepared(statement).run(...values.map(bound)).changes))

  return {
    dialect,
    read,
    byKey({ name, table, key, columns }) {
      const statement = { name, text: `SELECT ${columns.join(', ')} FROM ${table} WHERE ${key} = $1` }
      return async (wanted) => (await read(statement, [wanted]))[0] ?? null
    },
    write,
    // There is no other replica.
    writeAsLeader: ({ name, text }, values) => write({ name, text: text('TRUE') }, values),
    insert: async (insertions) =>
      writing(() => {
        for (const insertion of insertions) {
          const insert = prepared(insertOf(insertion))
          for (const row of insertion.rows) insert.run(...row.map(bound))
        }
      }),
  }
}

const insertOf = ({ name, into, columns, onConflict }: Insertion): SqlStatement => ({
  name,
  text: `INSERT INTO ${into} (${columns.map((column) => column.name).join(', ')})
    VALUES (${columns.map((_, at) => `$${at + 1}`).join(', ')}) ${onConflict}`,
})

const bound = (value: SqlValue): SqliteValue =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? JSON.stringify(value) : value
