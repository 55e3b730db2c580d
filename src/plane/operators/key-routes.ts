// Keys of operators, and whose key this is.

import type { Row } from '#domain/core/change.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { createOperatorKey, revokeOperatorKey } from './change-operator-keys.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { keyView, keyApi, type CreateKeyRequest } from '#wire/operators/key-api.ts'
import { attributionOf, answer, type Route, serve } from '#plane/http/route.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'

type KeyParts = {
  readonly keySeal: KeySeal
  /** The hashes of those that no plane wrote. */
  readonly keyBook: { forged(keys: readonly Row<OperatorKey>[]): Promise<ReadonlySet<string>> }
}

export const operatorKeyRoutes = (core: FlowCore, { keySeal, keyBook }: KeyParts): readonly Route[] =>
  serve(keyApi, {
    list: async () => {
      const rows = await core.store.operatorKeys()
      const forged = await keyBook.forged(rows)
      return answer({ keys: rows.map(({ value }) => keyView(value, forged.has(value.hash))) })
    },
    create: async (call) => {
      const { name, role } = call.body
      const expiresAtMs = endIn(call.body, core.clock.nowMs())
      if (isRefusal(expiresAtMs)) return expiresAtMs
      const made = await createOperatorKey(core, keySeal, { name, role, expiresAtMs }, attributionOf(call))
      return made.kind === 'refused' ? made : answer({ key: keyView(made.key), secret: made.secret }, 201)
    },
    revoke: async (call) => {
      const done = await revokeOperatorKey(core, keySeal, call.params.id, attributionOf(call))
      return done.kind === 'refused' ? done : answer(keyView(done.key))
    },
    whoami: async (call) => {
      const { id, name, role } = call.principal
      return answer({ id, name, role })
    },
  })

const endIn = (body: CreateKeyRequest, nowMs: number): number | null | Refusal => {
  const { expires_ms: afterMs, expires_at: at } = body
  if (afterMs !== undefined && at !== undefined)
    return refuseField('REQUEST_INVALID', 'expires_at', 'give expires_ms or expires_at')
  if (at === undefined) return afterMs === undefined ? null : nowMs + afterMs
  return parseIsoTime(at) ?? refuseField('REQUEST_INVALID', 'expires_at', 'it is no time such as 2030-01-31T00:00:00Z')
}
