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
  /** Single rows by their key; null: there is none. PostgreSQL reads together what is asked for in one turn. */
  byKey(selection: Selection): (key: string) => Promise<SqlRow | null>
  /**
   * One statement in its own transaction, beside the groups of commits. Returns how many rows it has changed, and is durable by
   * then. When it rejects, with a StoreFault, PostgreSQL may have carried it out or not.
   */
  write(statement: SqlStatement, values?: readonly SqlValue[]): Promise<number>
  /** The same, and it changes nothing unless this replica leads under a lease. */
  writeAsLeader(statement: LeaderStatement, values: readonly SqlValue[]): Promise<number>
  /** The same as `write` for many rows. SQLite writes all of them in one transaction, PostgreSQL each insertion in its own. */
  insert(insertions: readonly Insertion[]): Promise<void>
}

/** `ifLeader`: the condition that this replica leads. No other replica takes the lead while the statement runs. */
export type LeaderStatement = { readonly name: string; text(ifLeader: string): string }

export type Selection = {
  readonly name: string
  readonly table: string
  readonly key: string
  readonly columns: readonly string[]
}

export type SqlColumn = { readonly name: string; readonly type: 'text' | 'bigint' | 'smallint' | 'bytea' }

export type Insertion = {
  readonly name: string
  readonly into: string
  readonly columns: readonly SqlColumn[]
  readonly onConflict: string
  /** A value for each column. They are inserted in this order. */
  readonly rows: readonly (readonly SqlValue[])[]
}

export type Dialect = {
  /** The condition that a text column has one of the values of a list; `place` is the list's, such as `$1`. */
  isAmong(column: string, place: string): string
  /** Behind a SELECT: rows that another replica has locked are passed over. */
  readonly ifUnlocked: string
  /** Of two times that are not null the one to keep: replicas may write late what they saw earlier. */
  newerTime(given: string, stored: string): string
  /** The column that counts tokens in the order in which they were made. */
  readonly tokenOrder: string
  /** The table or view with the entries of every chain. `chain` has the chains. */
  readonly entries: string
  /** The chains of entries that have no row in `chain`; null is a chain whose name is lost. */
  readonly chainsWithoutRow: SqlStatement
  /** The text at this place of the document of a row, as its index has it. */
  inDocument(path: readonly (string | number)[]): string
  /** A row as `SELECT key, version, doc` gives it. */
  decode<K extends RowKind>(kind: K, found: SqlRow): Row<RowTypes[K]>
  /** The document of a row with what an earlier release has not written into it. */
  whole(kind: RowKind, document: object): object
}
