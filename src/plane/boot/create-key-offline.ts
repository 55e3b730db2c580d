// `muster key create --offline`: for a user who has lost every operator key, and still has the store and the sealing key. Such a
// user could write the row anyway; with this command the journal records it.

import type { Refusal } from '#domain/core/refusal.ts'
import type { Log } from '#platform/log.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { openFeed } from '#plane/core/feed.ts'
import { createOperatorKey, type KeyAsked } from '#plane/operators/change-operator-keys.ts'
import { asUsual, layFoundation } from '#plane/foundation/foundation.ts'
import { keyView } from '#wire/operators/key-api.ts'

type MadeOffline = { readonly kind: 'made'; readonly key: ReturnType<typeof keyView>; readonly secret: string }

/** With SQLite the plane is stopped. Throws as a start does where a plane would not start here. */
export const createKeyOffline = async (
  config: PlaneConfig,
  asked: KeyAsked,
  actor: string,
  log: Log,
): Promise<MadeOffline | Refusal> => {
  const needsDomain = 'there is no domain here that a key could be for'
  const foundation = await layFoundation(config, log, { ...asUsual, needsDomain })
  try {
    const by = { actor, source: null, correlation: null }
    const { store, clock, random, keySeal } = foundation
    const made = await createOperatorKey({ store, feed: openFeed(), clock, random }, keySeal, asked, by)
    return made.kind === 'refused' ? made : { ...made, key: keyView(made.key) }
  } finally {
    await foundation.store.close()
  }
}
