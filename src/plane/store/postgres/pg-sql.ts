// The SQL that both stores speak, on PostgreSQL.

import type { PgValue } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Dialect, Insertion, Sql, SqlRow, SqlStatement } from '#plane/store/sql/sql.ts'
import { gatherReads } from './gathered-reads.ts'
import { documentText } from './migrations.ts'
import { decodeShared, wholeDocument } from './older-rows.ts'
import type { PgAccess } from './pg-access.ts'

const dialect: Dialect = {
  isAmong: (column, place) => `${column} = ANY(${place}::text[])`,
  ifUnlocked: ' FOR UPDATE SKIP LOCKED',
  newerTime: (given, stored) => `GREATEST(${given}, ${stored})`,
  tokenOrder: 'made',
  entries: 'journal',
  chainsWithoutRow: {
    name: 'journal-chains-without-row',
    // From one chain to the next, without reading every entry.
    text: `WITH RECURSIVE found AS (
        (SELECT chain FROM journal ORDER BY chain LIMIT 1)
        UNION ALL
        SELECT (SELECT journal.chain FROM journal WHERE journal.chain > found.chain ORDER BY journal.chain LIMIT 1)
        FROM found WHERE found.chain IS NOT NULL)
      SELECT chain FROM found
      WHERE chain IS NOT NULL AND NOT EXISTS (SELECT FROM chain WHERE chain.chain = found.chain) ORDER BY chain`,
  },
  inDocument: documentText,
  decode: decodeShared,
  whole: wholeDocument,
}

export const openPgSql = (
  timers: Timers,
  access: Pick<PgAccess, 'read' | 'write'>,
  replicas: Pick<Replicas, 'self'>,
): Sql => ({
  dialect,
  read: async (statement, values) => (await access.read(statement, values)).rows,
  byKey({ name, table, key, columns }) {
    const text = `SELECT ${key} AS wanted_key, ${columns.join(', ')} FROM ${table} WHERE ${key} = ANY($1::text[])`
    return gatherReads(timers, async (keys) => {
      const { rows } = await access.read({ name, text }, [keys])
      return new Map(rows.map((row): [string, SqlRow] => [row['wanted_key'] as string, row]))
    })
  },
  write: async (statement, values) => (await access.write(statement, values)).count,
  writeAsLeader: async ({ name, text }, values) =>
    (await access.write({ name, text: text(leads(`$${values.length + 1}`)) }, [...values, replicas.self])).count,
  async insert(insertions) {
    for (const insertion of insertions) await access.write(insertOf(insertion), columnsOf(insertion))
  },
})

const leads = (self: string): string =>
  `EXISTS (SELECT FROM leadership JOIN replica ON replica.number = leadership.replica
    WHERE leadership.replica = ${self} AND replica.expires_at > clock_timestamp() FOR SHARE OF leadership)`

/** One statement for any number of rows: an array for each column. */
const insertOf = ({ name, into, columns, onConflict }: Insertion): SqlStatement => {
  const names = columns.map((column) => column.name).join(', ')
  const arrays = columns.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')
  return {
    name,
    text: `INSERT INTO ${into} (${names}) SELECT ${names}
      FROM unnest(${arrays}) WITH ORDINALITY AS given (${names}, place) ORDER BY place ${onConflict}`,
  }
}

const columnsOf = ({ columns, rows }: Insertion): readonly PgValue[] =>
  columns.map((_, at) => rows.map((row) => row[at] ?? null))
