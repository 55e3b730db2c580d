// Keys of operators, and whose key this is.

import { Type, type Static } from 'typebox'
import { roles, type OperatorKey } from '#domain/core/principal.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, IdParams, oneOf, orNull } from '#wire/core/shapes.ts'

export const KeyView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  role: oneOf(roles),
  created_by: Type.String(),
  created_at: Type.String(),
  revoked_at: orNull(Type.String()),
  /** Left out where it has no end. */
  expires_at: Type.Optional(Type.String()),
  /** No plane of this domain wrote its row: it grants nothing. Left out of others. */
  forged: Type.Optional(Type.Boolean()),
})
export const keyNameShape = '^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$'
/** Of `expires_ms`. */
export const shortestKeyMs = 60_000
export const longestKeyMs = 3650 * 86_400_000
/** `expires_ms` from now by the clock of the plane, or `expires_at`, not both. Without either it has no end. */
export const CreateKeyRequest = Type.Object(
  {
    name: Type.String({ pattern: keyNameShape }),
    role: oneOf(roles),
    expires_ms: Type.Optional(Type.Integer({ minimum: shortestKeyMs, maximum: longestKeyMs })),
    expires_at: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?Z$' })),
  },
  closed,
)
export type CreateKeyRequest = Static<typeof CreateKeyRequest>
/** The only time the key is shown. */
export const CreateKeyAnswer = Type.Object({ key: KeyView, secret: Type.String() })
export const KeyListAnswer = Type.Object({ keys: Type.Array(KeyView) })
export const WhoAmI = Type.Object({ id: Type.String(), name: Type.String(), role: oneOf(roles) })

/** Without the hash, which no reader of the list needs. */
export const keyView = (key: OperatorKey, forged = false): Static<typeof KeyView> => ({
  id: key.id,
  name: key.name,
  role: key.role,
  created_by: key.createdBy,
  created_at: isoTime(key.createdAtMs),
  revoked_at: isoTimeOrNull(key.revokedAtMs),
  // A row that was written into the database by hand may lack it.
  ...(typeof key.expiresAtMs === 'number' ? { expires_at: isoTime(key.expiresAtMs) } : {}),
  ...(forged ? { forged } : {}),
})

export const keyApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/keys',
    access: 'viewer',
    summary: 'All operator keys, without what could be used',
    answer: KeyListAnswer,
  }),
  create: endpoint({
    method: 'POST',
    path: '/v1/keys',
    access: 'platform-admin',
    summary: 'Makes an operator key; it is shown this once',
    body: CreateKeyRequest,
    answer: CreateKeyAnswer,
    example: { status: 201, request: { name: 'ada', role: 'operator' } },
  }),
  revoke: endpoint({
    method: 'POST',
    path: '/v1/keys/:id/revoke',
    access: 'platform-admin',
    summary: 'Revokes an operator key',
    params: IdParams,
    body: EmptyRequest,
    answer: KeyView,
  }),
  whoami: endpoint({
    method: 'GET',
    path: '/v1/whoami',
    access: 'viewer',
    summary: 'Name and role of the key in use',
    answer: WhoAmI,
  }),
}
