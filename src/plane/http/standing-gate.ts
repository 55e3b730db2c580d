// What a replica may answer, by its standing. A replica that is behind, or whose clock is off, decides nothing; one whose lease may
// be over answers only its health. Checked before a call is handled, and again before its reply leaves: the process may have been
// stopped in between, for longer than it knows.

import { storeInDoubt } from '#domain/continuity/continuity.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import type { Route } from './route.ts'

/** Machines get only facts they may rely on; operators may also read facts that were true a while ago. */
export type Callers = 'machines' | 'operators'

const retryAfterMs = 2000

/** Null: it may be answered. */
export const judgeStanding = (
  standing: Standing,
  callers: Callers,
  { method, always }: Pick<Route, 'always'> & { readonly method: string },
): Refusal | null => {
  if (standing.kind === 'serving' || always === true) return null
  const shows = standing.kind === 'behind' || standing.kind === 'skewed'
  if (shows && callers === 'operators' && method === 'GET') return null
  // What operators may still do is decided by what it would commit: see permittedInDoubt.
  if (standing.kind === 'in-doubt') return callers === 'operators' ? null : storeInDoubt(standing.why)
  return { ...refuse('REPLICA_BEHIND', standing.why), retryAfterMs }
}
