// The connection groups of commits are written on.

import type { PgSession } from '#platform/postgres.ts'
import type { PgAccess } from './pg-access.ts'

export type Writer = {
  readonly session: PgSession
  /** What the server has warned of since this was emptied. */
  readonly warnings: string[]
}

/**
 * A replica that stands still inside a transaction is cut off by the server and blocks nobody for long. The plans are
 * fixed: tables are small when a statement is planned and grow while its plan is kept, and every row is found by an index. Where
 * there is no other way than to read a table its cost is then imaginary, and must not make anybody compile the statement.
 */
const settings = {
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
}

export const openWriter = async (access: Pick<PgAccess, 'connect'>): Promise<Writer> => {
  const session = await access.connect('write', settings)
  const warnings: string[] = []
  session.onWarning((message) => void warnings.push(message))
  return { session, warnings }
}
