// What is wrong with writing to the store, as the last attempt has shown it.

import type { Log } from '#platform/log.ts'

export type TroubleRecord = {
  /** Null: nothing. */
  trouble(): string | null
  failed(error: unknown): void
  worked(): void
}

export const openTroubleRecord = (log: Log): TroubleRecord => {
  let trouble: string | null = null
  return {
    trouble: () => trouble,
    failed(error) {
      if (trouble === null) log.error({ err: error }, 'the store cannot be written to')
      trouble = error instanceof Error ? error.message : String(error)
    },
    worked() {
      if (trouble !== null) log.info('the store can be written to again')
      trouble = null
    },
  }
}
