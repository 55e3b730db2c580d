// Can the store be written to? As health.ts of the embedded one, with a write that has to be confirmed like any other.

import type { Log } from '#platform/log.ts'
import { pgTrouble, type Prepared } from '#platform/postgres.ts'
import type { ReplicaNumber } from '../replicas.ts'
import { openTroubleRecord, type TroubleRecord } from '../trouble-record.ts'
import type { PgAccess } from './pg-access.ts'

export type PgHealth = TroubleRecord & {
  /** While in trouble, tries whether a write works by now. */
  probe(): Promise<void>
}

export const openPgHealth = (deps: {
  readonly access: Pick<PgAccess, 'write'>
  readonly log: Log
  self(): ReplicaNumber
}): PgHealth => {
  const record = openTroubleRecord(deps.log, (error) => pgTrouble(error) === 'disk')
  let probing = false
  return {
    ...record,
    async probe() {
      if (record.trouble() === null || probing) return
      probing = true
      try {
        const { count } = await deps.access.write(touch, [deps.self()])
        // None: this replica has no lease any more, and nothing was written.
        if (count === 1) record.worked()
      } catch (error) {
        record.failed(error)
      }
      probing = false
    },
  }
}

/** Changes nothing. */
const touch: Prepared = { name: 'write-probe', text: 'UPDATE replica SET version = version WHERE number = $1' }
