// Outputs as profiles and vClusters show them, in the words in which they are set.

import { Type, type Static } from 'typebox'
import { keyTypes } from '#domain/core/profile.ts'
import type { Output } from '#domain/programs/output.ts'
import { mostOutputs } from '#domain/programs/output-rules.ts'
import { closed, oneOf, orNull } from '#wire/core/shapes.ts'

const OutputDocument = Type.Object(
  {
    name: Type.String(),
    lifetimeMs: Type.Integer({ minimum: 1 }),
    keyType: oneOf(keyTypes),
    usage: oneOf(['client', 'server', 'both']),
    /** With `{name}` for every DNS name that an operator registered for the node. */
    dns: Type.Array(Type.String()),
    /** Whether the registered addresses get in. */
    addresses: Type.Boolean(),
    /** Who signs its leaves; left out: the built-in authority. */
    issuer: Type.Optional(Type.String()),
    files: Type.Object(
      {
        directory: orNull(Type.String()),
        owner: orNull(Type.String()),
        group: orNull(Type.String()),
        /** Permission bits; in a request also in octal, such as "0640". */
        keyMode: Type.Integer(),
        combined: Type.Boolean(),
        pkcs12: Type.Boolean(),
        reload: orNull(Type.String()),
      },
      closed,
    ),
  },
  closed,
)

export const OutputsBody = Type.Array(OutputDocument, { maxItems: mostOutputs })
/** In an answer. Planes before 0.4 leave it out. */
export const OutputsOrNone = Type.Optional(OutputsBody)

export const outputsView = (outputs: readonly Output[]): Static<typeof OutputsBody> =>
  outputs.map((output) => ({ ...output, dns: [...output.dns], files: { ...output.files } }))
