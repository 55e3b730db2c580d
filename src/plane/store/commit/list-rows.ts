// A page of rows of one kind, as SQL. Both stores ask it, each with its own way of naming values.

import assert from 'node:assert/strict'
import type { RowKind } from '#domain/core/change.ts'
import { tableShapes } from './columns.ts'
import type { ListQuery, NodeQuery } from '#plane/store/contract/store.ts'

export type ListStatement = {
  /** The same for every query with the same columns: statements are prepared once. */
  readonly name: string
  readonly text: string
  readonly values: readonly (string | number)[]
}

export const listStatement = (
  kind: RowKind,
  { where = {}, after, limit }: ListQuery,
  value: (place: number) => string,
): ListStatement => {
  const { table, columns } = tableShapes[kind]
  const names = Object.keys(where).toSorted()
  for (const name of names) assert(Object.hasOwn(columns, name), `rows of kind ${kind} have no column ${name}`)
  const conditions = [`key > ${value(1)}`, ...names.map((name, index) => `${name} = ${value(index + 3)}`)]
  return {
    name: ['list', kind, ...names].join('-'),
    text: `SELECT key, version, doc FROM ${table} WHERE ${conditions.join(' AND ')} ORDER BY key LIMIT ${value(2)}`,
    values: [after ?? '', limit, ...names.map((name) => where[name] as string | number)],
  }
}

export const listOfNodes = ({ membership, profile, vcluster = null, after, limit }: NodeQuery): ListQuery => ({
  where: {
    ...(membership === null ? {} : { membership }),
    ...(profile === null ? {} : { profile }),
    ...(vcluster === null ? {} : { vcluster }),
  },
  after,
  limit,
})
