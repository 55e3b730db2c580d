// Keys of operators, and whose key this is.

import type { Row } from '#domain/core/change.ts'
import type { OperatorKey } from '#domain/core/principal.ts'
import { createOperatorKey, revokeOperatorKey } from './change-operator-keys.ts'
import { keyView, keyApi } from '#wire/operators/key-api.ts'
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
      const made = await createOperatorKey(core, keySeal, call.body, attributionOf(call))
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
