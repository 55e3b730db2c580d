// Alerts as operators and webhooks see them.

import { Type, type Static } from 'typebox'
import { acknowledgementOf, alertStates, type Alert } from '#domain/alerts/alert.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, IdParams, oneOf, orNull } from '#wire/core/shapes.ts'
import { alertKinds, alertSeverities } from '#domain/alerts/alert-kinds.ts'

export const AlertView = Type.Object({
  id: Type.String(),
  kind: oneOf(alertKinds),
  severity: oneOf(alertSeverities),
  /** A node's id, the id of an authority, or the name of a listener. */
  subject: Type.String(),
  node: orNull(Type.String()),
  since: Type.String(),
  reason: Type.String(),
  state: oneOf(alertStates),
  acknowledged_by: orNull(Type.String()),
  acknowledged_at: orNull(Type.String()),
  note: orNull(Type.String()),
  resolved_at: orNull(Type.String()),
})
export type AlertView = Static<typeof AlertView>

/** `GET /v1/alerts`; `all`: those that are resolved too. */
const AlertListQuery = Type.Object(
  {
    all: Type.Optional(Type.Boolean()),
    after: Type.Optional(Type.String({ pattern: '^[0-9A-Z]{26}$' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
export const AlertListAnswer = Type.Object({ alerts: Type.Array(AlertView), next: orNull(Type.String()) })

/** `POST /v1/alerts/{id}/ack` */
export const AcknowledgeRequest = Type.Object(
  { note: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })) },
  closed,
)

export const alertView = ({ id, kind, severity, subject, node, sinceMs, reason, state }: Alert): AlertView => {
  const acknowledged = acknowledgementOf(state)
  return {
    id,
    kind,
    severity,
    subject,
    node,
    since: isoTime(sinceMs),
    reason,
    state: state.kind,
    acknowledged_by: acknowledged?.by ?? null,
    acknowledged_at: acknowledged === null ? null : isoTime(acknowledged.atMs),
    note: acknowledged?.note ?? null,
    resolved_at: state.kind === 'resolved' ? isoTime(state.atMs) : null,
  }
}

export const alertApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/alerts',
    access: 'viewer',
    summary: 'What an operator should look at, oldest first, page by page',
    query: AlertListQuery,
    answer: AlertListAnswer,
  }),
  acknowledge: endpoint({
    method: 'POST',
    path: '/v1/alerts/:id/ack',
    access: 'operator',
    summary: 'Acknowledges an alert; it stays until its cause is gone',
    params: IdParams,
    body: AcknowledgeRequest,
    answer: AlertView,
    example: { request: { note: 'replacing its disk' } },
  }),
}
