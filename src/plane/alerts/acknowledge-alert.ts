// An operator says that somebody looks after an alert.

import type { Alert } from '#domain/alerts/alert.ts'
import { decideAcknowledge } from '#domain/alerts/alert-decisions.ts'
import type { Attribution } from '#domain/core/decision.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { CommitDeps } from '#plane/core/commit-decision.ts'

export type AcknowledgeDeps = CommitDeps & {
  readonly store: Pick<Store, 'alertById' | 'commit'>
  readonly clock: Clock
}

const tries = 8

export const acknowledgeAlert = async (
  deps: AcknowledgeDeps,
  id: string,
  note: string | null,
  by: Attribution,
): Promise<{ readonly kind: 'acknowledged'; readonly alert: Alert } | Refusal> => {
  for (let attempt = 0; attempt < tries; attempt++) {
    const alert = await deps.store.alertById(id)
    const verdict = decideAcknowledge({ alert, note, by, nowMs: deps.clock.nowMs() })
    if (verdict.kind === 'refused') return verdict
    if (verdict.kind === 'unchanged') return { kind: 'acknowledged', alert: verdict.alert }
    const outcome = await deps.store.commit(verdict.change)
    if (outcome === 'lost-race') continue
    deps.feed.publish(outcome)
    return { kind: 'acknowledged', alert: verdict.alert }
  }
  return { ...refuse('BUSY', 'many changes to the same alert at once'), retryAfterMs: 1000 }
}
