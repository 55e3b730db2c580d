// What can no longer matter is removed: denials past their end, and certificates long past theirs. A certificate's row
// stays a while after it has expired, so that its holder hears "expired" and not "unknown".

import type { Database } from '#platform/sqlite.ts'
import type { Timers } from '#platform/timers.ts'
import { transact } from './transact.ts'

export const keptAfterExpiryMs = 30 * 24 * 3600 * 1000
const slice = 500

export const forgetEnded = async (
  deps: { readonly timers: Timers; readonly database: Database },
  nowMs: number,
): Promise<number> => {
  const sweeps = [
    { table: 'denial', end: 'until_ms', before: nowMs },
    { table: 'certificate', end: 'not_after_ms', before: nowMs - keptAfterExpiryMs },
  ]
  let total = 0
  for (const { table, end, before } of sweeps) {
    const remove = deps.database.prepare(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${end} < ? LIMIT ${slice})`,
    )
    for (let removed = slice; removed === slice; total += removed) {
      removed = transact(deps.database, () => Number(remove.run(before).changes))
      await new Promise<void>((resolve) => deps.timers.soon(resolve))
    }
  }
  return total
}
