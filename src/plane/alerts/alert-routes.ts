// What a person should look at, and that a person does.

import type { QueryOf } from '#wire/core/endpoint.ts'
import { alertApi, alertView } from '#wire/alerts/alert-api.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { attributionOf, answer, serve, type Route } from '#plane/http/route.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import { decideAcknowledge } from '#domain/alerts/alert-decisions.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import { busyOver, commitDecision, type CommitDeps } from '#plane/core/commit-decision.ts'

export type AlertRoutesDeps = AcknowledgeDeps & { readonly store: Pick<Store, 'alerts'> }

const usualPage = 100

export const operatorAlertRoutes = (deps: AlertRoutesDeps): readonly Route[] =>
  serve(alertApi, {
    list: (call) => listAlerts(deps, call.query),
    acknowledge: async (call) => {
      const { note = null } = call.body
      const done = await acknowledgeAlert(deps, call.params.id, note, attributionOf(call))
      return done.kind === 'refused' ? done : answer(alertView(done.alert))
    },
  })

const listAlerts = async (deps: AlertRoutesDeps, query: QueryOf<typeof alertApi.list>) => {
  const { all = false, after = null, limit = usualPage } = query
  const rows = await deps.store.alerts({ unresolvedOnly: !all, after, limit })
  const last = rows.at(-1)
  return answer({
    alerts: rows.map(({ value }) => alertView(value)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

export type AcknowledgeDeps = CommitDeps & {
  readonly store: Pick<Store, 'alertById' | 'commit'>
  readonly clock: Clock
}

const tries = { tries: 8, onBusy: busyOver('alert') }

/** An operator says that a person looks after an alert. */
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
