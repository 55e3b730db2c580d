// Assertions for tests of decisions.

import assert from 'node:assert/strict'
import type { Decided, RowKind } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { RefusalCode } from '#domain/core/refusal-table.ts'

export const expectDecided = <T extends { readonly kind: string }>(verdict: T): Extract<T, Decided> => {
  assert.equal(verdict.kind, 'decided', JSON.stringify(verdict))
  return verdict as Extract<T, Decided>
}

export const expectRefused = (verdict: { readonly kind: string }, code: RefusalCode, detail?: RegExp): void => {
  assert.equal(verdict.kind, 'refused', JSON.stringify(verdict))
  const refusal = verdict as Refusal
  assert.equal(refusal.code, code)
  if (detail !== undefined) assert.match(refusal.detail ?? '', detail)
}

/** `kind/key@version` of every row relied on. */
export const readsOf = ({ change }: Decided): string[] =>
  change.reads.map(({ row, key, version }) => `${row}/${key}@${version}`)

export const entryTypesOf = ({ change }: Decided): string[] => change.entries.map(({ type }) => type)

export const writesOf = ({ change }: Decided, kind: RowKind): unknown[] =>
  change.writes.filter(({ put }) => put === kind).map(({ value }) => value)
