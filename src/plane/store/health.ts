// Can the store be written to? Known from the last attempt, and asked again by a small write while the answer is no: a
// plane that stops trying because of the answer would otherwise never hear another.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Database } from '#platform/sqlite.ts'
import { transact } from './transact.ts'
import { openTroubleRecord, type TroubleRecord } from './trouble-record.ts'

export type Health = TroubleRecord & {
  /** While in trouble, tries whether a write works by now. */
  probe(): void
}

export const openHealth = (deps: { readonly clock: Clock; readonly log: Log }, database: Database): Health => {
  const write = database.prepare('INSERT OR REPLACE INTO write_probe (id, at_ms) VALUES (1, ?)')
  const record = openTroubleRecord(deps.log)
  return {
    ...record,
    probe() {
      if (record.trouble() === null) return
      try {
        transact(database, () => void write.run(deps.clock.nowMs()))
        record.worked()
      } catch (error) {
        record.failed(error)
      }
    },
  }
}
