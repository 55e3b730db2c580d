// The SQL that both stores speak, on PostgreSQL.

import type { Dialect, Sql } from '#plane/store/sql/sql.ts'
import { decodeShared } from './older-rows.ts'
import type { PgAccess } from './pg-access.ts'

const pgDialect: Dialect = {
  isAmong: (column, place) => `${column} = ANY(${place}::text[])`,
  tokenOrder: 'made',
  decode: decodeShared,
}

export const openPgSql = (access: Pick<PgAccess, 'read'>): Sql => ({
  dialect: pgDialect,
  read: async (statement, values) => (await access.read(statement, values)).rows,
})
