// Can the store be written to? Known from the last attempt, and asked again by a small write while the answer is no: a
// plane that stops trying because of the answer would otherwise never hear another.

import type { Log } from '#platform/log.ts'
import type { Prepared } from '#platform/postgres.ts'
import type { Health } from '../health.ts'
import type { ReplicaNumber } from '../replicas.ts'
import type { PgAccess } from './pg-access.ts'

export type PgHealth = Omit<Health, 'probe'> & {
  /** While in trouble, tries whether a write works by now. */
  probe(): Promise<void>
}

export const openPgHealth = (deps: {
  readonly access: Pick<PgAccess, 'write'>
  readonly log: Log
  self(): ReplicaNumber
}): PgHealth => {
  let trouble: string | null = null
  let probing = false
  const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
  const worked = (): void => {
    if (trouble !== null) deps.log.info('the store can be written to again')
    trouble = null
  }
  return {
    trouble: () => trouble,
    failed(error) {
      if (trouble === null) deps.log.error({ err: error }, 'the store cannot be written to')
      trouble = reasonOf(error)
    },
    worked,
    async probe() {
      if (trouble === null || probing) return
      probing = true
      try {
        const { count } = await deps.access.write(touch, [deps.self()])
        // None: this replica has no lease any more, and nothing was written.
        if (count === 1) worked()
      } catch (error) {
        trouble = reasonOf(error)
      }
      probing = false
    },
  }
}

/** Changes nothing, and has to be confirmed like any other write. */
const touch: Prepared = { name: 'write-probe', text: 'UPDATE replica SET version = version WHERE number = $1' }
