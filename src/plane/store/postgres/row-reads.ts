// Single rows, read together.

import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Sql } from '#plane/store/sql/sql.ts'
import { policyKinds, rowKinds } from './row-statements.ts'

export type RowReads = {
  get<K extends RowKind>(kind: K, key: string): Promise<Row<RowTypes[K]> | null>
  /** To be called when a commit, of whichever replica, wrote such a row, or lost over one: it is read again. */
  forgetPolicy(kind: RowKind, key: string): void
  /** All of it: the store has been set back. */
  forgetPolicies(): void
}

type Found = Row<unknown> | null

/** `has`: whether the schema has a table for the kind. */
export const openRowReads = (sql: Pick<Sql, 'byKey' | 'dialect'>, has: (kind: RowKind) => boolean): RowReads => {
  const policy = new Map<string, Found>()
  let forgotten = 0
  const ask = Object.fromEntries(
    rowKinds.map((kind) => {
      const { table } = tableShapes[kind]
      const find = sql.byKey({ name: `get-${kind}`, table, key: 'key', columns: ['key', 'version', 'doc'] })
      return [kind, (key: string) => find(key).then((row) => (row === null ? null : sql.dialect.decode(kind, row)))]
    }),
  ) as Readonly<Record<RowKind, (key: string) => Promise<Found>>>

  /** From memory where it can be: an outdated row costs a lost race, which reads it again. */
  const askPolicy = async (kind: RowKind, key: string): Promise<Found> => {
    const place = `${kind} ${key}`
    const known = policy.get(place)
    if (known !== undefined) return known
    const before = forgotten
    const found = await ask[kind](key)
    // What was forgotten meanwhile may be this very row, as it was before.
    if (found !== null && before === forgotten) policy.set(place, found)
    return found
  }

  return {
    get<K extends RowKind>(kind: K, key: string) {
      if (!has(kind)) return Promise.resolve(null)
      return (policyKinds.has(kind) ? askPolicy(kind, key) : ask[kind](key)) as Promise<Row<RowTypes[K]> | null>
    },
    forgetPolicy(kind, key) {
      if (!policyKinds.has(kind)) return
      forgotten++
      policy.delete(`${kind} ${key}`)
    },
    forgetPolicies() {
      forgotten++
      policy.clear()
    },
  }
}
