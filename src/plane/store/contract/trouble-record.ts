// What is wrong with writing to the store, as the last attempt has shown it.

import type { Log } from '#platform/log.ts'
import { causeOf } from './store-errors.ts'

export type TroubleRecord = {
  /** Null: nothing. */
  trouble(): string | null
  /** The trouble is that of a disk: full, failing or read-only. */
  isDisk(): boolean
  failed(error: unknown): void
  worked(): void
}

/** `isDiskFault`: called with the error of the store's driver. */
export const openTroubleRecord = (log: Log, isDiskFault: (error: unknown) => boolean): TroubleRecord => {
  let trouble: string | null = null
  let disk = false
  return {
    trouble: () => trouble,
    isDisk: () => trouble !== null && disk,
    failed(error) {
      if (trouble === null) log.error({ err: error }, 'the store cannot be written to')
      trouble = error instanceof Error ? error.message : String(error)
      disk = isDiskFault(causeOf(error))
    },
    worked() {
      if (trouble !== null) log.info('the store can be written to again')
      trouble = null
    },
  }
}
