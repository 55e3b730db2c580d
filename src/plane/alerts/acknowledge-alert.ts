// An operator says that somebody looks after an alert.

import type { Alert } from '#domain/alerts/alert.ts'
import { decideAcknowledge } from '#domain/alerts/alert-decisions.ts'
import type { Attribution } from '#domain/core/decision.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { busyOver, commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export type AcknowledgeDeps = CommitDeps & {
  readonly store: Pick<Store, 'alertById' | 'commit'>
  readonly clock: Clock
}

const tries = { tries: 8, onBusy: busyOver('alert') }

export const acknowledgeAlert = async (
  deps: AcknowledgeDeps,
  id: string,
  note: string | null,
  by: Attribution,
): Promise<{ readonly kind: 'acknowledged'; readonly alert: Alert } | Refusal> => {
  const decide = async () =>
    decideAcknowledge({ alert: await deps.store.alertById(id), note, by, nowMs: deps.clock.nowMs() })
  const done = await commitDecision(deps, decide, tries)
  return done.kind === 'refused' ? done : { kind: 'acknowledged', alert: done.alert }
}
