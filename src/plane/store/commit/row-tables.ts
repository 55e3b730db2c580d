// The rows decisions are made on: one table a kind, read and written by prepared statements.

import type { NodeGroup, Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { nodeAsRead } from '#domain/journal/node-shape.ts'
import type { Database, SqlValue, Statement } from '#platform/sqlite.ts'
import { tableShapes, type TableShape } from './columns.ts'

export type RowTables = {
  get<K extends RowKind>(kind: K, key: string): Row<RowTypes[K]> | null
  /** The same, from memory where it can be. Only for readers outside transactions: what it keeps has to be committed. */
  getCached<K extends RowKind>(kind: K, key: string): Row<RowTypes[K]> | null
  /** 0: there is no such row. */
  version(kind: RowKind, key: string): number
  /** Whether a node that is not revoked is under it. */
  isUsed(group: NodeGroup): boolean
  /** Whether a node has this tag of a hardware profile, and that of another one. */
  isSharedTag(tag: string): boolean
  /** The caller has made sure that the row has the version `before`; 0: that there is none. */
  put(row: EncodedRow, before: number, version: number): void
  /** What was observed of a node goes with its row. */
  remove(kind: RowKind, key: string): void
}

/** A row ready to be written: encoded before the group, so that a value without an encoding fails no other member. */
export type EncodedRow = {
  readonly kind: RowKind
  readonly key: string
  readonly doc: string
  readonly columns: readonly SqlValue[]
  /** The columns that are not fixed. */
  readonly changing: readonly SqlValue[]
}

export const encodeRow = <K extends RowKind>(kind: K, value: RowTypes[K]): EncodedRow => {
  const shape: TableShape<RowTypes[K]> = tableShapes[kind]
  const columns: SqlValue[] = []
  const changing: SqlValue[] = []
  for (const name in shape.columns) {
    const column = (shape.columns[name] as (value: RowTypes[K]) => SqlValue)(value)
    columns.push(column)
    if (!shape.fixed.includes(name)) changing.push(column)
  }
  return { kind, key: shape.key(value), doc: JSON.stringify(value), columns, changing }
}

/** A row as `SELECT key, version, doc` gives it. `filled`: adds what documents of an earlier release lack. */
export const decodeRow = <K extends RowKind>(
  kind: K,
  found: Record<string, unknown>,
  filled?: (document: object) => object,
): Row<RowTypes[K]> => {
  const doc = found['doc'] as string
  const parsed: unknown = kind === 'node' ? jsonIn(doc) : JSON.parse(doc)
  const isWhole = filled === undefined || typeof parsed !== 'object' || parsed === null
  const whole: unknown = isWhole ? parsed : filled(parsed)
  const value = kind === 'node' ? nodeAsRead(found['key'] as string, whole) : whole
  return { version: found['version'] as number, value: value as RowTypes[K] }
}

/** A damaged document is reported for its row; it does not fail a whole list. */
const jsonIn = (doc: string): unknown => {
  try {
    return JSON.parse(doc)
  } catch {
    return undefined
  }
}

export const openRowTables = (database: Database): RowTables => {
  const tables = {} as Record<RowKind, Statements>
  for (const kind of Object.keys(tableShapes) as RowKind[]) tables[kind] = prepare(database, tableShapes[kind])
  const users = { profile: usersOf(database, 'profile'), vcluster: usersOf(database, 'vcluster') }
  const sharers = database.prepare(findTagSharer)
  const forgetObserved = database.prepare('DELETE FROM observation WHERE node = ?')
  const policy = new Map<string, Row<unknown>>()
  const decodeOnce = openDecoded()
  const get: RowTables['get'] = (kind, key) => {
    const found = tables[kind].get.get(key) as FoundRow | undefined
    return found === undefined ? null : decodeOnce(kind, { key, version: found[0], doc: found[1] })
  }
  return {
    get,
    getCached<K extends RowKind>(kind: K, key: string): Row<RowTypes[K]> | null {
      if (!policyKinds.has(kind)) return get(kind, key)
      const place = `${kind} ${key}`
      const known = policy.get(place)
      if (known !== undefined) return known as Row<RowTypes[K]>
      const found = get(kind, key)
      if (found !== null) policy.set(place, found)
      return found
    },
    version(kind, key) {
      const known = policyKinds.has(kind) ? policy.get(`${kind} ${key}`) : undefined
      if (known !== undefined) return known.version
      const found = tables[kind].version.get(key) as FoundVersion | undefined
      return found === undefined ? 0 : found[0]
    },
    isUsed: ({ kind, name }) => users[kind].get(name) !== undefined,
    isSharedTag: (tag) => sharers.get(JSON.stringify(tag), tag, tag) !== undefined,
    put(row, before, version) {
      // Also when the transaction is rolled back: then it is read again.
      policy.delete(`${row.kind} ${row.key}`)
      const { insert, update } = tables[row.kind]
      if (before === 0) insert.run(row.key, version, row.doc, ...row.columns)
      else update.run(version, row.doc, ...row.changing, row.key)
    },
    remove(kind, key) {
      policy.delete(`${kind} ${key}`)
      tables[kind].remove.run(key)
      if (kind === 'node') forgetObserved.run(key)
    },
  }
}

/** A machine that comes in or comes back is read half a dozen times in a row, and parsing its document costs more than reading it. */
const mostDecoded = 256

/** Of what was decoded last, by the very text that was read: a row that was altered meanwhile is decoded again. */
const openDecoded = (): typeof decodeRow => {
  const decoded = new Map<string, { readonly doc: unknown; readonly row: Row<unknown> }>()
  return <K extends RowKind>(kind: K, found: Record<string, unknown>): Row<RowTypes[K]> => {
    if (kind !== 'node') return decodeRow(kind, found)
    const key = found['key'] as string
    const known = decoded.get(key)
    if (known !== undefined && known.doc === found['doc'] && known.row.version === found['version'])
      return known.row as Row<RowTypes[K]>
    const row = decodeRow(kind, found)
    if (decoded.size >= mostDecoded) decoded.clear()
    decoded.set(key, { doc: found['doc'], row })
    return row
  }
}

const usersOf = (database: Database, column: NodeGroup['kind']): Statement =>
  database.prepare(`SELECT 1 FROM node WHERE ${column} = ? AND membership <> 'revoked' LIMIT 1`)

/** Of all nodes, which is seldom asked: the text is looked at first, and parsed only where the tag may be in it. */
const tagsOfNode = `json_each(iif(json_valid(node.doc), node.doc, '{}'), '$.machine.tags') AS tag`
const findTagSharer = `SELECT 1 FROM node WHERE instr(node.doc, ?) > 0
    AND EXISTS (SELECT 1 FROM ${tagsOfNode} WHERE tag.value = ?)
    AND EXISTS (SELECT 1 FROM ${tagsOfNode} JOIN hardware_profile AS profile ON profile.key = tag.value
      WHERE profile.key <> ? AND json_extract(profile.doc, '$.removedAtMs') IS NULL)
  LIMIT 1`

/** Few rows, read by every decision and hardly ever written. */
const policyKinds: ReadonlySet<RowKind> = new Set<RowKind>(['profile', 'domain'])

type Statements = {
  readonly get: Statement
  readonly version: Statement
  readonly insert: Statement
  readonly update: Statement
  readonly remove: Statement
}

/** What the two statements of the hot path return: a list is made faster than an object with names. */
type FoundRow = readonly [version: number, doc: string]
type FoundVersion = readonly [version: number]

const asList = (statement: Statement): Statement => {
  statement.setReturnArrays(true)
  return statement
}

const prepare = (
  database: Database,
  shape: { table: string; columns: object; fixed: readonly string[] },
): Statements => {
  const names = ['version', 'doc', ...Object.keys(shape.columns)]
  const changing = names.filter((name) => !shape.fixed.includes(name))
  return {
    get: asList(database.prepare(`SELECT version, doc FROM ${shape.table} WHERE key = ?`)),
    version: asList(database.prepare(`SELECT version FROM ${shape.table} WHERE key = ?`)),
    insert: database.prepare(
      `INSERT INTO ${shape.table} (key, ${names.join(', ')}) VALUES (?${', ?'.repeat(names.length)})`,
    ),
    update: database.prepare(
      `UPDATE ${shape.table} SET ${changing.map((name) => `${name} = ?`).join(', ')} WHERE key = ?`,
    ),
    remove: database.prepare(`DELETE FROM ${shape.table} WHERE key = ?`),
  }
}
