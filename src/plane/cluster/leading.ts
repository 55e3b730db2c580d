// What of all replicas only the one that leads does. It begins when this one begins to lead, with a store that commits
// nothing once another does, and ends when it no longer leads; a replica that was paused meanwhile writes nothing late.

import type { Log } from '#platform/log.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { Fence } from '#plane/store/contract/replicas.ts'
import { Fenced } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** Something that runs until it is stopped. */
export type Led = { stop(): Promise<void> | void }

export const fencedStore = (store: Store, fence: Fence): Store => {
  // The database refuses a former leader by its fencing token as well; this check only saves the attempt.
  const ifLeading = <T>(run: () => Promise<T>): Promise<T> =>
    store.replicas.leadership()?.number === fence.number
      ? run()
      : Promise.reject(new Fenced('this replica does not lead any more'))
  return {
    ...store,
    commit: (change) => store.commit(change, fence),
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
  let wanted: Fence | null = null
  let led: (Led & { readonly fence: Fence }) | null = null
  const settle = async (): Promise<void> => {
    if (led?.fence.number === wanted?.number) return
    const before = led
    led = null
    await before?.stop()
    if (wanted === null) return
    const fence = wanted
    led = { fence, ...begin(fencedStore(store, fence)) }
  }
  const follow = (fence: Fence | null): void => {
    wanted = fence
    inTurn(settle).catch((error: unknown) =>
      log.error({ err: error }, 'what a leader does could not be begun or ended'),
    )
  }
  let stopped = false
  store.replicas.onLeadership((fence) => {
    if (!stopped) follow(fence)
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
