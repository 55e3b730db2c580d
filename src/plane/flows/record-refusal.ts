// Refusals are journaled too, as far as the budget for strangers goes; beyond it they are counted.

import type { Attribution } from '#domain/decision.ts'
import { boundedText, entry } from '#domain/decision.ts'
import type { EntryDraft } from '#domain/journal-entry.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { CommitDeps } from './commit-decision.ts'
import type { StrangersBudget } from './strangers-budget.ts'

export type RefusalDeps = CommitDeps & { readonly clock: Clock; readonly strangers: StrangersBudget }

export type RefusalContext = {
  readonly by: Attribution
  readonly about: Partial<Pick<EntryDraft, 'node' | 'epoch' | 'token' | 'serial' | 'issuer'>>
  readonly what: 'enroll' | 'renew' | 'confirm' | 'channel'
  readonly source: string
}

/**
 * Gives back what to answer. A caller without a valid credential (`stranger`) beyond the budget hears only that it is
 * limited; a known one always hears the reason.
 */
export const recordRefusal = async (
  deps: RefusalDeps,
  refusal: Refusal,
  context: RefusalContext,
  caller: 'stranger' | 'known',
): Promise<Refusal> => {
  if (deps.strangers.charge(context.source) === 'over') {
    return caller === 'known' ? refusal : { ...refuse('RATE_LIMITED'), retryAfterMs: deps.strangers.retryAfterMs() }
  }
  const body = {
    code: refusal.code,
    detail: refusal.detail === null ? null : boundedText(refusal.detail),
    attempt: context.what,
  }
  const outcome = await deps.store.commit({
    reads: [],
    writes: [],
    entries: [entry(context.by, deps.clock.nowMs(), 'refused', context.about, body)],
  })
  if (outcome !== 'lost-race') deps.feed.publish(outcome)
  return refusal
}

/** Once a minute: what was beyond the budget, as one entry. */
export const recordCounted = async (deps: RefusalDeps): Promise<void> => {
  const counted = deps.strangers.takeCounted()
  if (counted === null) return
  const by: Attribution = { actor: 'system:admission', source: null, correlation: null }
  const outcome = await deps.store.commit({
    reads: [],
    writes: [],
    entries: [entry(by, deps.clock.nowMs(), 'refusals.counted', {}, { ...counted })],
  })
  if (outcome !== 'lost-race') deps.feed.publish(outcome)
}
