// Single rows, read together.

import type { Row, RowKind, RowTypes } from '#domain/core/change.ts'
import type { Prepared } from '#platform/postgres.ts'
import type { Timers } from '#platform/timers.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { gatherReads, type Gathered } from './gathered-reads.ts'
import { decodeShared } from './older-rows.ts'
import type { PgAccess } from './pg-access.ts'
import { policyKinds, rowKinds } from './row-statements.ts'

export type RowReads = {
  get<K extends RowKind>(kind: K, key: string): Promise<Row<RowTypes[K]> | null>
  /** To be called when a commit, of whichever replica, wrote such a row, or lost over one: it is read again. */
  forgetPolicy(kind: RowKind, key: string): void
  /** All of it: the store has been set back. */
  forgetPolicies(): void
}

type Found = Row<unknown> | null

export const openRowReads = (deps: { readonly access: Pick<PgAccess, 'read'>; readonly timers: Timers }): RowReads => {
  const policy = new Map<string, Found>()
  let forgotten = 0
  const ask = Object.fromEntries(
    rowKinds.map((kind) => [kind, gatherReads(deps.timers, (keys) => readRows(deps.access, kind, keys))]),
  ) as Readonly<Record<RowKind, Gathered<Row<unknown>>>>

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
    get: <K extends RowKind>(kind: K, key: string) =>
      (policyKinds.has(kind) ? askPolicy(kind, key) : ask[kind](key)) as Promise<Row<RowTypes[K]> | null>,
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

/** Those that are there, as they are now and from no cache, by key. */
const readRows = async <K extends RowKind>(
  access: Pick<PgAccess, 'read'>,
  kind: K,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Row<RowTypes[K]>>> => {
  const { rows } = await access.read(selects[kind], [keys])
  return new Map(rows.map((row) => [row['key'] as string, decodeShared(kind, row)]))
}

const selects = Object.fromEntries(
  Object.entries(tableShapes).map(([kind, { table }]) => [
    kind,
    { name: `get-${kind}`, text: `SELECT key, version, doc FROM ${table} WHERE key = ANY($1::text[])` },
  ]),
) as Record<RowKind, Prepared>
