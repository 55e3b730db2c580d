// What a person should look at, and that somebody does.

import { acknowledgeAlert, type AcknowledgeDeps } from './acknowledge-alert.ts'
import type { QueryOf } from '#wire/core/endpoint.ts'
import { alertApi, alertView } from '#wire/alerts/alert-api.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'

export type AlertRoutesDeps = AcknowledgeDeps & { readonly store: Pick<Store, 'alerts' | 'alertById' | 'commit'> }

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
