// What can no longer matter is removed: plans, released allocations, ended tasks and rollouts, and old claims past their end, certificates and
// denials long past theirs. A certificate's row stays a while after it has expired, so that its holder gets "expired" and not
// "unknown"; a denial stays at least as long as the certificates it denies.
//
// The time given is never the wall clock of a process, which may be wrong: see lived-time.ts.

import { turn, type Timers } from '#platform/timers.ts'
import type { LeaderStatement, Sql } from './sql.ts'

const keptAfterExpiryMs = 30 * 24 * 3600 * 1000

/** Each of a kind of rows of the same name. */
type EndingTable =
  | 'plan'
  | 'allocation'
  | 'claim'
  | 'certificate'
  | 'denial'
  | 'program'
  | 'worker'
  | 'task'
  | 'task_rollout'
  | 'rollout_nodes'

/** Tables and the column that says when a row ends; a row without an end stays. */
const endingRows = (livedMs: number): readonly { table: EndingTable; end: string; before: number }[] => [
  ...(['plan', 'allocation', 'claim', 'task', 'task_rollout', 'rollout_nodes'] as const).map((table) => ({
    ...{ table, end: 'until_ms', before: livedMs },
  })),
  { table: 'certificate', end: 'not_after_ms', before: livedMs - keptAfterExpiryMs },
  { table: 'denial', end: 'until_ms', before: livedMs - keptAfterExpiryMs },
  { table: 'program', end: 'until_ms', before: livedMs - keptAfterExpiryMs },
  { table: 'worker', end: 'until_ms', before: livedMs - keptAfterExpiryMs },
]

const slice = 500

/** Removes nothing unless this replica leads. `has`: whether the schema has the table. Returns how many rows it has removed. */
export const forgetEnded = async (
  timers: Timers,
  sql: Sql,
  livedMs: number,
  has: (table: EndingTable) => boolean = () => true,
): Promise<number> => {
  const { ifUnlocked } = sql.dialect
  let total = 0
  for (const { table, end, before } of endingRows(livedMs)) {
    if (!has(table)) continue
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
