// An authority somebody else may have the key of, as an operator withdraws it.

import { Type, type Static } from 'typebox'
import { CaView } from './ca-api.ts'

/** `POST /v1/ca/withdraw` */
export const WithdrawRequest = Type.Object(
  {
    /** As `GET /v1/ca` names it. */
    issuer: Type.String({ pattern: '^[0-9a-f]{1,64}$' }),
    reason: Type.String({ minLength: 1, maxLength: 256 }),
  },
  { additionalProperties: false },
)
export type WithdrawRequest = Static<typeof WithdrawRequest>

export const WithdrawAnswer = Type.Object({
  /** It and what was below it; none: it was withdrawn before. */
  withdrawn: Type.Array(Type.String()),
  /** What takes their place on this plane. */
  successors: Type.Array(Type.String()),
  /** On this plane; the others cut theirs as they hear of it. */
  channels_cut: Type.Integer(),
  ca: CaView,
})
export type WithdrawAnswer = Static<typeof WithdrawAnswer>
