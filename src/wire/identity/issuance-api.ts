// Whether certificates are issued, as operators are shown it, halt it and resume it.

import { Type, type Static } from 'typebox'
import type { Issuance } from '#domain/identity/issuance.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { EmptyRequest } from '#wire/core/shapes.ts'

/** `GET /v1/issuance`, and what a halt and a resumption answer. */
export const IssuanceView = Type.Object({
  state: Type.Union([Type.Literal('open'), Type.Literal('halted')]),
  /** Null while it is open. */
  halted: Type.Union([
    Type.Object({
      by: Type.String(),
      since: Type.String(),
      reason: Type.String(),
      /** Nodes that are in still renew. */
      renewals: Type.Boolean(),
    }),
    Type.Null(),
  ]),
})
export type IssuanceView = Static<typeof IssuanceView>

/** `POST /v1/issuance/halt` */
export const HaltRequest = Type.Object(
  {
    reason: Type.String({ minLength: 1, maxLength: 256 }),
    /** Nodes that are in still renew. Left out: they do not. */
    renewals: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
export type HaltRequest = Static<typeof HaltRequest>

export const issuanceView = (issuance: Issuance): IssuanceView => {
  if (issuance.kind === 'open') return { state: 'open', halted: null }
  const { by, sinceMs, reason, renewals } = issuance
  return { state: 'halted', halted: { by, since: isoTime(sinceMs), reason, renewals } }
}

export const issuanceApi = {
  show: endpoint({
    method: 'GET',
    path: '/v1/issuance',
    access: 'viewer',
    summary: 'Whether certificates are issued, and who has halted that',
    answer: IssuanceView,
  }),
  halt: endpoint({
    method: 'POST',
    path: '/v1/issuance/halt',
    access: 'platform-admin',
    summary: 'No plane of the domain issues anything to a node any more; renewals go on where asked for',
    cutOff: true,
    body: HaltRequest,
    answer: IssuanceView,
  }),
  resume: endpoint({
    method: 'POST',
    path: '/v1/issuance/resume',
    access: 'platform-admin',
    summary: 'Certificates are issued again',
    body: EmptyRequest,
    answer: IssuanceView,
  }),
}
