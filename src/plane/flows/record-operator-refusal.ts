// What operators were refused belongs in the journal as much as what they did. Callers without a key are a crowd of
// unknown size, so theirs go there as far as a budget allows and are counted beyond it.

import { boundedText, entry } from '#domain/decision.ts'
import { actorOf, type Principal } from '#domain/principal.ts'
import type { Refusal, RefusalCode } from '#domain/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { CommitDeps } from './commit-decision.ts'
import type { StrangersBudget } from './strangers-budget.ts'

export type OperatorRefusalDeps = CommitDeps & { readonly clock: Clock; readonly strangers: StrangersBudget }

export type RefusedCall = {
  readonly refusal: Refusal
  readonly principal: Principal | null
  readonly source: string
  readonly method: string
  readonly path: string | null
  readonly correlation: string
}

const aboutTheCaller: readonly RefusalCode[] = ['OPERATOR_KEY_REQUIRED', 'OPERATOR_KEY_INVALID', 'ROLE_FORBIDDEN']
/** Our own trouble, and not the place to write about it. */
const ours: readonly RefusalCode[] = ['UNAVAILABLE', 'DISK_TROUBLE', 'BUSY']

export const recordOperatorRefusal = async (deps: OperatorRefusalDeps, call: RefusedCall): Promise<void> => {
  if (!belongsInJournal(call)) return
  const { refusal, principal, source, method, path, correlation } = call
  if (principal === null && deps.strangers.charge(source) === 'over') return
  const by = { actor: principal === null ? 'anonymous' : actorOf(principal), source, correlation }
  const detail = refusal.detail === null ? null : boundedText(refusal.detail)
  const body = { code: refusal.code, detail, attempt: `${method} ${path}` }
  const outcome = await deps.store.commit({
    reads: [],
    writes: [],
    entries: [entry(by, deps.clock.nowMs(), 'refused', {}, body)],
  })
  if (outcome !== 'lost-race') deps.feed.publish(outcome)
}

const belongsInJournal = ({ refusal, principal, method, path }: RefusedCall): boolean => {
  if (path === null || ours.includes(refusal.code)) return false
  if (aboutTheCaller.includes(refusal.code)) return true
  return principal !== null && principal.kind === 'operator' && method !== 'GET'
}
