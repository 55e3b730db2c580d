// What can no longer matter is removed: plans, released allocations and old claims past their end, certificates and
// denials long past theirs. A certificate's row stays a while after it has expired, so that its holder hears "expired" and
// not "unknown"; a denial stays at least as long as the certificates it denies.
//
// The time given is never the wall clock of a process, which may be wrong: see lived-time.ts.

import type { Database } from '#platform/sqlite.ts'
import { turn, type Timers } from '#platform/timers.ts'
import { transact } from './transact.ts'

const keptAfterExpiryMs = 30 * 24 * 3600 * 1000

/** Tables and the column that says when a row ends; a row without an end stays. */
export const endingRows = (livedMs: number): readonly { table: string; end: string; before: number }[] => [
  ...['plan', 'allocation', 'claim'].map((table) => ({ table, end: 'until_ms', before: livedMs })),
  { table: 'certificate', end: 'not_after_ms', before: livedMs - keptAfterExpiryMs },
  { table: 'denial', end: 'until_ms', before: livedMs - keptAfterExpiryMs },
]

const slice = 500

export const forgetEnded = async (
  deps: { readonly timers: Timers; readonly database: Database },
  livedMs: number,
): Promise<number> => {
  let total = 0
  for (const { table, end, before } of endingRows(livedMs)) {
    const remove = deps.database.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${end} < ? LIMIT ${slice})`,
    )
    for (let removed = slice; removed === slice; total += removed) {
      removed = transact(deps.database, () => Number(remove.run(before).changes))
      await turn(deps.timers)
    }
  }
  return total
}
