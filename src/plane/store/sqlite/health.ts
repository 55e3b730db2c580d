// Can the store be written to? Known from the last attempt, and asked again by a small write while the answer is no: a
// plane that stops trying because of the answer would otherwise never get another.

import { sqliteTrouble, type Database } from '#platform/sqlite.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { transact } from './transact.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { openTroubleRecord, type TroubleRecord } from '#plane/store/contract/trouble-record.ts'

export type Health = TroubleRecord & {
  /** While in trouble, tries whether a write works by now: with room for the reserve, where that was used. */
  probe(): void
}

export class ReserveInUse extends Error {
  constructor() {
    super('the disk was full, and only its reserve is left: it is kept for revoke, quarantine, halt and withdraw')
    this.name = 'ReserveInUse'
  }
}

const isDiskFault = (error: unknown): boolean =>
  error instanceof ReserveInUse || ['full', 'flush', 'disk', 'corrupt'].includes(sqliteTrouble(error) ?? '')

export const openHealth = (
  { clock, log }: Pick<StoreCore, 'clock' | 'log'>,
  reserve: DiskReserve,
  database: Database,
): Health => {
  const write = database.prepare('INSERT OR REPLACE INTO write_probe (id, at_ms) VALUES (1, ?)')
  const record = openTroubleRecord(log, isDiskFault)
  if (reserve.spent()) record.failed(new ReserveInUse())
  return {
    ...record,
    probe() {
      reserve.refill()
      if (record.trouble() === null || reserve.spent()) return
      try {
        transact(database, () => void write.run(clock.nowMs()))
        record.worked()
      } catch (error) {
        record.failed(error)
      }
    },
  }
}
