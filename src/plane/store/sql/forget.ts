// What can no longer matter is removed: plans, released allocations, ended tasks and rollouts, and old claims past their end, certificates and
// denials long past theirs. A certificate's row stays a while after it has expired, so that its holder gets "expired" and not
// "unknown"; a denial stays at least as long as the certificates it denies.
//
// The time given is never the wall clock of a process, which may be wrong: see lived-time.ts.

import type { RowKind } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { turn, type Timers } from '#platform/timers.ts'
import type { LeaderStatement, Sql } from './sql.ts'

const keptAfterExpiryMs = 30 * 24 * 3600 * 1000

type EndingRows = { readonly kind: RowKind; readonly end: string; readonly before: number }

/** Kinds of rows and the column that says when a row ends; a row without an end stays. */
const endingRows = (livedMs: number): readonly EndingRows[] => [
  ...(['plan', 'allocation', 'claim', 'task', 'task-rollout', 'rollout-nodes'] as const).map((kind) => ({
    ...{ kind, end: 'until_ms', before: livedMs },
  })),
  { kind: 'certificate', end: 'not_after_ms', before: livedMs - keptAfterExpiryMs },
  ...(['denial', 'program', 'worker', 'order', 'issuer-revocation'] as const).map((kind) => ({
    ...{ kind, end: 'until_ms', before: livedMs - keptAfterExpiryMs },
  })),
]

const slice = 500

/** Removes nothing unless this replica leads. `has`: whether the schema has the table. Returns how many rows it has removed. */
export const forgetEnded = async (
  timers: Timers,
  sql: Sql,
  livedMs: number,
  has: (kind: RowKind) => boolean = () => true,
): Promise<number> => {
  const { ifUnlocked } = sql.dialect
  let total = 0
  for (const { kind, end, before } of endingRows(livedMs)) {
    if (!has(kind)) continue
    const { table } = tableShapes[kind]
    // A row that another replica is about to write is left alone: it may be about to last longer.
    const ended = `SELECT key FROM ${table} WHERE ${end} < $1 LIMIT ${slice}${ifUnlocked}`
    const removal: LeaderStatement = {
      name: `forget-${table}`,
      text: (ifLeader) => `DELETE FROM ${table} WHERE key IN (${ended}) AND ${ifLeader}`,
    }
    for (let removed = slice; removed === slice; total += removed) {
      removed = await sql.writeAsLeader(removal, [before])
      await turn(timers)
    }
  }
  return total
}
