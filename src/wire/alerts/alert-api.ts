// Alerts as operators and webhooks see them.

import { Type, type Static } from 'typebox'
import { alertStates } from '#domain/alerts/alert.ts'
import { alertKinds, alertSeverities } from '#domain/alerts/alert-kinds.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

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
export const AlertListQuery = Type.Object(
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
