// Text that PostgreSQL has no way to keep would fail its whole group: it is thrown back to whoever brought it.

import assert from 'node:assert/strict'
import type { CommitPlan } from '#plane/store/commit/plan-commit.ts'

export const refuseUnstorable = ({ reads, writes, holdings, entries }: CommitPlan): void => {
  for (const { row, key } of reads) refuse(key, `the key of a ${row}`)
  for (const { row } of writes) {
    refuse(row.key, `the key of a ${row.kind}`)
    for (const value of row.columns) if (typeof value === 'string') refuse(value, `a column of a ${row.kind}`)
  }
  for (const { claims } of holdings) for (const claim of claims) refuse(claim, 'a hardware address')
  for (const { draft } of entries) if (draft.node !== null) refuse(draft.node, `the node of a ${draft.type} entry`)
}

const refuse = (text: string, what: string): void =>
  assert(!text.includes('\0') && text.isWellFormed(), `${what} has characters that cannot be kept`)
