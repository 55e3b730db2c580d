// What a person should look at, and that somebody does.

import type { Static } from 'typebox'
import { acknowledgeAlert, type AcknowledgeDeps } from './acknowledge-alert.ts'
import { alertView } from './alert-view.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { AcknowledgeRequest, AlertListAnswer, AlertListQuery, AlertView } from '#wire/alerts/alert-api.ts'
import { attributionOf, IdParams, param } from '#plane/http/operator-call.ts'
import { answer, type Answer, type Route } from '#plane/http/route.ts'

export type AlertRoutesDeps = AcknowledgeDeps & { readonly store: Pick<Store, 'alerts' | 'alertById' | 'commit'> }

const usualPage = 100

export const operatorAlertRoutes = (deps: AlertRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/alerts',
    access: 'viewer',
    summary: 'What a person should look at, oldest first, page by page',
    query: AlertListQuery,
    answer: AlertListAnswer,
    handle: (call) => listAlerts(deps, call.query),
  },
  {
    method: 'POST',
    path: '/v1/alerts/:id/ack',
    access: 'operator',
    summary: 'Says that somebody looks after an alert; it stays until what it is about is over',
    params: IdParams,
    body: AcknowledgeRequest,
    answer: AlertView,
    handle: async (call) => {
      const { note = null } = call.body as Static<typeof AcknowledgeRequest>
      const done = await acknowledgeAlert(deps, param(call, 'id'), note, attributionOf(call))
      return done.kind === 'refused' ? done : answer(alertView(done.alert))
    },
  },
]

const listAlerts = async (deps: AlertRoutesDeps, query: Static<typeof AlertListQuery>): Promise<Answer> => {
  const { all = false, after = null, limit = usualPage } = query
  const rows = await deps.store.alerts({ unresolvedOnly: !all, after, limit })
  const last = rows.at(-1)
  return answer({
    alerts: rows.map(({ value }) => alertView(value)),
    next: rows.length < limit || last === undefined ? null : last.value.id,
  })
}
