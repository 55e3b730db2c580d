// How a node says by what it will recover, at its enrollment and at a recovery.

import { Type, type Static } from 'typebox'
import { longestStatement } from '#wire/api/statement.ts'
import { closed } from '#wire/core/shapes.ts'

/** A signature, base64url. */
export const proof = Type.String({ pattern: '^[A-Za-z0-9_-]{64,256}$' })

export const RecoveryRegistration = Type.Union([
  Type.Object(
    {
      kind: Type.Literal('key'),
      /** SubjectPublicKeyInfo, DER, base64. */
      public_key: Type.String({ minLength: 32, maxLength: 1024 }),
      challenge: Type.String({ minLength: 1, maxLength: longestStatement }),
      proof,
    },
    closed,
  ),
  Type.Object({ kind: Type.Literal('bearer') }, closed),
])
export type RecoveryRegistration = Static<typeof RecoveryRegistration>
