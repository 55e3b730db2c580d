// What of all replicas only the one that leads does. It begins when this one begins to lead, with a store that commits
// nothing once another does, and ends when it no longer leads; a replica that was paused meanwhile writes nothing late.

import type { Log } from '#platform/log.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** Something that runs until it is stopped. */
export type Led = { stop(): Promise<void> | void }

export const leaderStore = (store: Store, fencingToken: FencingToken): Store => {
  // The database refuses a former leader by its fencing token as well; this check only saves the attempt.
  const ifLeading = <T>(run: () => Promise<T>): Promise<T> =>
    store.replicas.leadership()?.number === fencingToken.number
      ? run()
      : Promise.reject(new StaleReplica('this replica does not lead any more'))
  return {
    ...store,
    commit: (change) => store.commit(change, fencingToken),
    forget: (livedMs) => ifLeading(() => store.forget(livedMs)),
    addLived: (ms) => ifLeading(() => store.addLived(ms)),
    keepWebhookProgress: (progress) => ifLeading(() => store.keepWebhookProgress(progress)),
  }
}

/** `begin` is called anew each time this replica begins to lead. */
export const startLeading = (
  { store, log }: { readonly store: Store; readonly log: Log },
  begin: (asLeader: Store) => Led,
): Led => {
  const inTurn = takeTurns()
  let wanted: FencingToken | null = null
  let led: (Led & { readonly fencingToken: FencingToken }) | null = null
  const settle = async (): Promise<void> => {
    if (led?.fencingToken.number === wanted?.number) return
    const before = led
    led = null
    await before?.stop()
    if (wanted === null) return
    const fencingToken = wanted
    led = { fencingToken, ...begin(leaderStore(store, fencingToken)) }
  }
  const follow = (fencingToken: FencingToken | null): void => {
    wanted = fencingToken
    inTurn(settle).catch((error: unknown) =>
      log.error({ err: error }, 'what a leader does could not be begun or ended'),
    )
  }
  let stopped = false
  store.replicas.onLeadership((fencingToken) => {
    if (!stopped) follow(fencingToken)
  })
  follow(store.replicas.leadership())
  return {
    async stop() {
      stopped = true
      wanted = null
      await inTurn(settle)
    },
  }
}
