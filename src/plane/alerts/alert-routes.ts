// What a person should look at, and that a person does.

import type { QueryOf } from '#wire/core/endpoint.ts'
import { alertApi, alertView } from '#wire/alerts/alert-api.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { attributionOf, answer, serve, type Route } from '#plane/http/route.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import { decideAcknowledge } from '#domain/alerts/alert-decisions.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { busyOver, commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'

const usualPage = 100

export const operatorAlertRoutes = (core: FlowCore): readonly Route[] =>
  serve(alertApi, {
    list: (call) => listAlerts(core.store, call.query),
    acknowledge: async (call) => {
      const { note = null } = call.body
      const done = await acknowledgeAlert(core, call.params.id, note, attributionOf(call))
      return done.kind === 'refused' ? done : answer(alertView(done.alert))
    },
  })

const listAlerts = async (store: Pick<Store, 'alerts'>, query: QueryOf<typeof alertApi.list>) => {
  const { all = false, after = null, limit = usualPage } = query
  const rows = await store.alerts({ unresolvedOnly: !all, after, limit })
  const last = rows.at(-1)
  return answer({
    alerts: rows.map(({ value }) => alertView(value)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}

const tries = { tries: 8, onBusy: busyOver('alert') }

/** An operator says that a person looks after an alert. */
export const acknowledgeAlert = async (
  core: FlowCore,
  id: string,
  note: string | null,
  by: Attribution,
): Promise<{ readonly kind: 'acknowledged'; readonly alert: Alert } | Refusal> => {
  const decide = async () =>
    decideAcknowledge({ alert: await core.store.alertById(id), note, by, nowMs: core.clock.nowMs() })
  const done = await commitDecision(core, decide, tries)
  return done.kind === 'refused' ? done : { kind: 'acknowledged', alert: done.alert }
}
