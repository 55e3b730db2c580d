// The journal's tables. `bytes` is the entry; the columns beside it only find it, and verification compares them.

import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Database, SqlValue, Statement } from '#platform/sqlite.ts'

export type JournalRow = {
  readonly sequence: number
  readonly operation: string
  readonly bytes: string
  readonly hash: Uint8Array
  readonly signature: Uint8Array | null
  readonly keyId: string | null
  readonly node: string | null
  readonly type: string
}

/** Where the stored chain begins: at its genesis, or at a head before which everything was pruned. */
export type BaseRow = {
  readonly chain: string
  readonly domain: string
  readonly sequence: number
  readonly hash: Uint8Array
  readonly signature: Uint8Array
  readonly keyId: string
}

export type JournalFilter = {
  readonly node: NodeId | null
  readonly type: EntryType | readonly EntryType[] | null
}

export type JournalTable = {
  base(): BaseRow | null
  insertBase(base: BaseRow): void
  append(entry: JournalEntry, bytes: string, hash: Uint8Array): void
  sign(sequence: number, signature: Uint8Array, keyId: string): void
  newest(): JournalRow | null
  newestSigned(): JournalRow | null
  /** Oldest first. */
  after(sequence: number, limit: number, filter: JournalFilter): readonly JournalRow[]
  /** The newest ones, oldest first. */
  last(count: number, filter: JournalFilter): readonly JournalRow[]
}

const columns = 'sequence, operation, bytes, hash, signature, key_id AS keyId, node, type'

export const openJournalTable = (database: Database): JournalTable => {
  const select = (rest: string): Statement => database.prepare(`SELECT ${columns} FROM journal ${rest}`)
  const base = database.prepare(
    'SELECT chain, domain, sequence, hash, signature, key_id AS keyId FROM journal_base WHERE id = 1',
  )
  const insertBase = database.prepare('INSERT INTO journal_base VALUES (1, ?, ?, ?, ?, ?, ?)')
  const append = database.prepare(
    'INSERT INTO journal (sequence, operation, bytes, hash, node, type) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const sign = database.prepare('UPDATE journal SET signature = ?, key_id = ? WHERE sequence = ?')
  const newest = select('ORDER BY sequence DESC LIMIT 1')
  const newestSigned = select('WHERE signature IS NOT NULL ORDER BY sequence DESC LIMIT 1')
  const forward = filtered((where) => select(`WHERE sequence > ?${where} ORDER BY sequence LIMIT ?`))
  const backward = filtered((where) => select(`WHERE sequence > ?${where} ORDER BY sequence DESC LIMIT ?`))
  const one = (statement: Statement): JournalRow | null => (statement.get() as JournalRow | undefined) ?? null
  return {
    base: () => (base.get() as BaseRow | undefined) ?? null,
    insertBase: (row) => void insertBase.run(row.chain, row.domain, row.sequence, row.hash, row.signature, row.keyId),
    append: (entry, bytes, hash) =>
      void append.run(entry.sequence, entry.operation, bytes, hash, entry.node, entry.type),
    sign: (sequence, signature, keyId) => void sign.run(signature, keyId, sequence),
    newest: () => one(newest),
    newestSigned: () => one(newestSigned),
    after: (sequence, limit, filter) =>
      ofEachType(filter, (one) => forward(one, sequence, limit))
        .toSorted(bySequence)
        .slice(0, limit),
    last: (count, filter) =>
      ofEachType(filter, (one) => backward(one, 0, count))
        .toSorted(bySequence)
        .slice(-count),
  }
}

const bySequence = (one: JournalRow, other: JournalRow): number => one.sequence - other.sequence

type OneType = { readonly node: NodeId | null; readonly type: EntryType | null }

/** The journal finds entries of one type at a time. */
const ofEachType = (
  { node, type }: JournalFilter,
  read: (filter: OneType) => readonly JournalRow[],
): readonly JournalRow[] =>
  typeof type === 'string' || type === null ? read({ node, type }) : type.flatMap((one) => read({ node, type: one }))

/** One statement for each combination of filters: a condition that may be switched off keeps SQLite from its indexes. */
const filtered = (prepare: (where: string) => Statement) => {
  // The plus keeps SQLite from the index by type, where it would walk past the entries of every other node.
  const both = prepare(' AND node = ? AND +type = ?')
  const byNode = prepare(' AND node = ?')
  const byType = prepare(' AND type = ?')
  const all = prepare('')
  return ({ node, type }: OneType, sequence: number, limit: number): readonly JournalRow[] => {
    const statement = node !== null ? (type !== null ? both : byNode) : type !== null ? byType : all
    const values: SqlValue[] = [node, type].filter((value) => value !== null)
    return statement.all(sequence, ...values, limit) as JournalRow[]
  }
}
