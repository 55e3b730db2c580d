// SQL that both stores speak. A statement is written once, with $1, $2 in the places of its values; SQLite and PostgreSQL
// each run it in their own way, and what they cannot write alike is in `Dialect`.

import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'

/** Parsed once, under this name. */
export type SqlStatement = { readonly name: string; readonly text: string }

/** A list is only given where the statement has `dialect.isAmong`. */
export type SqlValue = string | number | Uint8Array | null | readonly string[]

export type SqlRow = Readonly<Record<string, unknown>>

export type Sql = {
  readonly dialect: Dialect
  /** Rows that are committed. SQLite reads them in the turn of the call. Rejects with a StoreFault. */
  read(statement: SqlStatement, values?: readonly SqlValue[]): Promise<readonly SqlRow[]>
}

export type Dialect = {
  /** The condition that a text column has one of the values of a list; `place` is the list's, such as `$1`. */
  isAmong(column: string, place: string): string
  /** The column that counts tokens in the order in which they were made. */
  readonly tokenOrder: string
  /** A row as `SELECT key, version, doc` gives it. */
  decode<K extends RowKind>(kind: K, found: SqlRow): Row<RowTypes[K]>
}
