// How a refusal looks on the wire, for those who read one: what every code means is with those who answer (refusal-response.ts).

import { Type, type Static } from 'typebox'

/** Every refusal, on every listener. */
export const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  detail: Type.Union([Type.String(), Type.Null()]),
  next: Type.String(),
  retry_after_ms: Type.Union([Type.Integer(), Type.Null()]),
  /** The field of the request that is at fault, as a path: `wireguard.public_key`. Left out where it is no single one. */
  field: Type.Optional(Type.String()),
  /** True: the plane does not know the field. Agents send a request again without an optional part that is not known. */
  field_unknown: Type.Optional(Type.Boolean()),
  /** With a certificate request for a key of another type: the types that the profile allows. An agent makes one of them. */
  key_types: Type.Optional(Type.Array(Type.String())),
  /** True: a cut-off that could not be committed is in force at the replica that answers. */
  in_force_here: Type.Optional(Type.Boolean()),
  /** With it: the replicas that do not know of it, and where the order is kept until it is committed. */
  replicas_unaware: Type.Optional(Type.Array(Type.String())),
  kept_in: Type.Optional(Type.Union([Type.Literal('data folder'), Type.Literal('memory')])),
})
export type ErrorBody = Static<typeof ErrorBody>
