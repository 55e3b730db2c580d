// Whether certificates are issued, as operators are shown it, halt it and resume it.

import { Type, type Static } from 'typebox'

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
