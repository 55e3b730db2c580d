// Can the store be written to? Known from the last commit or renewal of the lease, which is tried every second and so
// finds out by itself when the answer changes.

import type { Log } from '#platform/log.ts'

export type PgHealth = {
  trouble(): string | null
  failed(error: unknown): void
  worked(): void
}

export const openPgHealth = (log: Log): PgHealth => {
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
