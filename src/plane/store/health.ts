// Can the store be written to? Known from the last attempt, and asked again by a small write while the answer is no: a
// plane that stops trying because of the answer would otherwise never hear another.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Database } from '#platform/sqlite.ts'
import { transact } from './transact.ts'

export type Health = {
  trouble(): string | null
  failed(error: unknown): void
  worked(): void
  /** While in trouble, tries whether a write works by now. */
  probe(): void
}

export const openHealth = (deps: { readonly clock: Clock; readonly log: Log }, database: Database): Health => {
  const write = database.prepare('INSERT OR REPLACE INTO write_probe (id, at_ms) VALUES (1, ?)')
  let trouble: string | null = null
  const worked = (): void => {
    if (trouble !== null) deps.log.info('the store can be written to again')
    trouble = null
  }
  return {
    trouble: () => trouble,
    failed(error) {
      if (trouble === null) deps.log.error({ err: error }, 'the store cannot be written to')
      trouble = error instanceof Error ? error.message : String(error)
    },
    worked,
    probe() {
      if (trouble === null) return
      try {
        transact(database, () => void write.run(deps.clock.nowMs()))
        worked()
      } catch (error) {
        trouble = error instanceof Error ? error.message : String(error)
      }
    },
  }
}
