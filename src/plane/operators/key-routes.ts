// Keys of operators, and whose key this is.

import type { Static } from 'typebox'
import type { Row } from '#domain/core/change.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { createOperatorKey, revokeOperatorKey, type KeyDeps } from './change-operator-keys.ts'
import { keyView } from './key-view.ts'
import {
  CreateKeyAnswer,
  CreateKeyRequest,
  EmptyRequest,
  KeyListAnswer,
  KeyView,
  WhoAmI,
} from '#wire/api/operator-api.ts'
import { attributionOf, IdParams, operatorOf, param } from '#plane/http/operator-call.ts'
import { answer, type Route } from '#plane/http/route.ts'

export type KeyRoutesDeps = KeyDeps & {
  /** The hashes of those that no plane wrote. */
  readonly keyBook: { forged(keys: readonly Row<OperatorKey>[]): Promise<ReadonlySet<string>> }
}

export const operatorKeyRoutes = (deps: KeyRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/keys',
    access: 'viewer',
    summary: 'All operator keys, without what could be used',
    answer: KeyListAnswer,
    handle: async () => {
      const rows = await deps.store.operatorKeys()
      const forged = await deps.keyBook.forged(rows)
      return answer({ keys: rows.map(({ value }) => keyView(value, forged.has(value.hash))) })
    },
  },
  {
    method: 'POST',
    path: '/v1/keys',
    access: 'platform-admin',
    summary: 'Makes an operator key; it is shown this once',
    body: CreateKeyRequest,
    answer: CreateKeyAnswer,
    handle: async (call) => {
      const made = await createOperatorKey(deps, call.body as Static<typeof CreateKeyRequest>, attributionOf(call))
      return made.kind === 'refused' ? made : answer({ key: keyView(made.key), secret: made.secret }, 201)
    },
  },
  {
    method: 'POST',
    path: '/v1/keys/:id/revoke',
    access: 'platform-admin',
    summary: 'Revokes an operator key',
    params: IdParams,
    body: EmptyRequest,
    answer: KeyView,
    handle: async (call) => {
      const done = await revokeOperatorKey(deps, param(call, 'id'), attributionOf(call))
      return done.kind === 'refused' ? done : answer(keyView(done.key))
    },
  },
  {
    method: 'GET',
    path: '/v1/whoami',
    access: 'viewer',
    summary: 'Name and role of the key in use',
    answer: WhoAmI,
    handle: async (call) => {
      const { id, name, role } = operatorOf(call)
      return answer({ id, name, role })
    },
  },
]
