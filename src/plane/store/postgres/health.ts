// Can the store be written to? As health.ts of the embedded one, with a write that has to be confirmed like any other, and
// that waits for the same tables as a commit does. It is tried periodically also without trouble: a client that locks a table makes
// every call wait, and /readyz would not show it.

import { pgTrouble, type Prepared } from '#platform/postgres.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import { causeOf } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { openTroubleRecord, type TroubleRecord } from '#plane/store/contract/trouble-record.ts'
import type { PgAccess } from './pg-access.ts'

export type PgHealth = TroubleRecord & {
  /** Tries whether a write works: each time while in trouble, else now and then. */
  probe(): Promise<void>
  /** For reads: a table that is locked, or a server that is gone, is met there first. */
  watched(access: PgAccess): PgAccess
}

const probeAnywayMs = 5000
/** On a full disk a small write may fit where a commit does not: after a failed commit a small write proves nothing for this time. */
const diskTroubleMs = 10_000

const isDiskFault = (error: unknown): boolean => pgTrouble(error) === 'disk'

export const openPgHealth = (
  { clock, log }: Pick<StoreCore, 'clock' | 'log'>,
  access: Pick<PgAccess, 'write'>,
  replicas: Pick<Replicas, 'self'>,
): PgHealth => {
  const record = openTroubleRecord(log, isDiskFault)
  let probing = false
  let probedMs = clock.monotonicMs()
  let diskFailedMs = -Infinity
  const keep = (error: unknown): void => {
    if (isDiskFault(causeOf(error))) diskFailedMs = clock.monotonicMs()
    record.failed(error)
  }
  const failed = (error: unknown): void => {
    // Otherwise one caller with a value that the server does not accept would make the replica unready.
    if (pgTrouble(causeOf(error)) !== 'statement') keep(error)
  }
  return {
    ...record,
    failed,
    async probe() {
      const sinceMs = clock.monotonicMs()
      if (probing || (record.trouble() === null && sinceMs - probedMs < probeAnywayMs)) return
      probing = true
      probedMs = sinceMs
      try {
        const { count } = await access.write(touch, [replicas.self])
        // No row: this replica has no lease any more, and nothing was written.
        if (count === 1 && clock.monotonicMs() - diskFailedMs >= diskTroubleMs) record.worked()
      } catch (error) {
        // Also when the statement itself is refused: it has no values of a caller.
        keep(error)
      }
      probing = false
    },
    watched: (whole) => ({
      ...whole,
      read: (statement, values) =>
        whole.read(statement, values).catch((error: unknown) => {
          failed(error)
          throw error
        }),
    }),
  }
}

/** Changes nothing, and waits for a client that has locked one of these tables. */
const touch: Prepared = {
  name: 'write-probe',
  text: `WITH nodes AS (UPDATE node SET version = version WHERE false),
      entries AS (UPDATE journal SET touched = touched WHERE false),
      chains AS (UPDATE chain SET settled = settled WHERE false)
    UPDATE replica SET version = version WHERE number = $1`,
}
