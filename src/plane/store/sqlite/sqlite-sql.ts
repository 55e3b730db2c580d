// The SQL that both stores speak, on SQLite. Everything runs in the turn of its call, between two groups of commits: it
// sees what is committed and nothing else.

import type { Database, SqlValue as SqliteValue, Statement } from '#platform/sqlite.ts'
import { decodeRow } from '#plane/store/commit/row-tables.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Dialect, Sql, SqlStatement, SqlValue } from '#plane/store/sql/sql.ts'

const sqliteDialect: Dialect = {
  isAmong: (column, place) => `${column} IN (SELECT value FROM json_each(${place}))`,
  tokenOrder: 'rowid',
  decode: decodeRow,
}

export const openSqliteSql = (database: Database): Sql => {
  const statements = new Map<string, Statement>()
  const prepared = ({ name, text }: SqlStatement): Statement => {
    const known = statements.get(name) ?? database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
    statements.set(name, known)
    return known
  }
  return {
    dialect: sqliteDialect,
    async read(statement, values = []) {
      try {
        return prepared(statement).all(...values.map(bound))
      } catch (error) {
        throw new StoreFault('the store cannot be read', error)
      }
    },
  }
}

const bound = (value: SqlValue): SqliteValue =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? JSON.stringify(value) : value
