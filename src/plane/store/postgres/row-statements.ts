// The statements a group of commits is made of: for every kind of row one that locks, one that updates, one that inserts and one
// that removes, however many rows there are.

import type { RowKind } from '#domain/core/change.ts'
import type { Prepared } from '#platform/postgres.ts'
import { columnTypeOf, tableShapes } from '#plane/store/commit/columns.ts'

type RowStatements = {
  /** Finds rows by key, and holds on to them until the transaction ends. */
  readonly lock: Prepared
  /** Finds who has one of these unique values, an array for each unique column. Null: the kind has none. */
  readonly taken: Prepared | null
  /** Arrays: key, version before, version, doc, and the columns that change. */
  readonly update: Prepared
  /** Arrays: key, version, doc, and every column. A row that is there already is not counted; another's unique value throws. */
  readonly insert: Prepared
  /** Arrays: key, and the version it has. */
  readonly remove: Prepared
}

/**
 * Few rows, read by every decision and hardly ever written. A lock of each row by every replica would have to be written
 * down in that row again and again; theirs are advisory, see group-needs.ts.
 */
export const policyKinds: ReadonlySet<RowKind> = new Set<RowKind>(['profile', 'domain'])

/** The order in which every replica goes through them, so that no two wait for each other. */
export const rowKinds = Object.keys(tableShapes) as readonly RowKind[]

const arrayOf = (column: string): string => `${columnTypeOf(column)}[]`
const parameters = (types: readonly string[]): string => types.map((type, at) => `$${at + 1}::${type}`).join(', ')

const statementsOf = (kind: RowKind): RowStatements => {
  const { table, columns, fixed, unique = [] } = tableShapes[kind]
  const all = Object.keys(columns)
  const changing = all.filter((column) => !fixed.includes(column))
  const found = ['key', 'version', ...unique, ...(kind === 'denial' ? ['doc'] : [])].join(', ')
  const inserted = ['key', 'version', 'doc', ...all]
  const insertTypes = ['text[]', 'bigint[]', 'text[]', ...all.map(arrayOf)]
  const updateTypes = ['text[]', 'bigint[]', 'bigint[]', 'text[]', ...changing.map(arrayOf)]
  const set = ['version', 'doc', ...changing].map((column) => `${column} = wanted.${column}`)
  const mode = policyKinds.has(kind) ? '' : ' FOR NO KEY UPDATE'
  return {
    lock: {
      name: `lock-${kind}`,
      text: `SELECT ${found} FROM ${table} WHERE key = ANY($1::text[]) ORDER BY key${mode}`,
    },
    taken:
      unique.length === 0
        ? null
        : {
            name: `taken-${kind}`,
            text: `SELECT key, ${unique.join(', ')} FROM ${table}
              WHERE ${unique.map((column, at) => `${column} = ANY($${at + 1}::text[])`).join(' OR ')}`,
          },
    update: {
      name: `update-${kind}`,
      text: `UPDATE ${table} SET ${set.join(', ')}
        FROM unnest(${parameters(updateTypes)}) AS wanted (${['key', 'before', 'version', 'doc', ...changing].join(', ')})
        WHERE ${table}.key = wanted.key AND ${table}.version = wanted.before`,
    },
    insert: {
      name: `insert-${kind}`,
      text: `INSERT INTO ${table} (${inserted.join(', ')})
        SELECT ${inserted.join(', ')} FROM unnest(${parameters(insertTypes)}) AS wanted (${inserted.join(', ')})
        ON CONFLICT (key) DO NOTHING`,
    },
    remove: {
      name: `remove-${kind}`,
      text: `DELETE FROM ${table} USING unnest($1::text[], $2::bigint[]) AS wanted (key, version)
        WHERE ${table}.key = wanted.key AND ${table}.version = wanted.version`,
    },
  }
}

export const rowStatements = Object.fromEntries(rowKinds.map((kind) => [kind, statementsOf(kind)])) as Record<
  RowKind,
  RowStatements
>
