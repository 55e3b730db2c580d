// What every part of the plane is built on. A function takes it first, as `core` (or `Pick<Core, 'store' | 'clock'>` where it
// needs no more), and its own parts after it, each by name. Nothing else is merged into a core and no core into anything
// else, so that go-to-definition leads from a part to the thing that it is. Only main.ts makes one.

import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import type { Feed } from './feed.ts'

export type Core = {
  readonly store: Store
  readonly feed: Feed
  readonly clock: Clock
  readonly random: Random
  readonly timers: Timers
  readonly log: Log
}

/** What a flow needs that reads, decides and commits. */
export type FlowCore = Pick<Core, 'store' | 'clock' | 'random'> & { readonly feed: Pick<Feed, 'publish'> }

/** What a commit needs: where it is written, and to whom it is published. */
export type CommitCore = { readonly store: Pick<Store, 'commit'>; readonly feed: Pick<Feed, 'publish'> }

/** The same over another store, such as that of a leader. */
export const withStore = <C extends Pick<Core, 'store'>>(core: C, store: Store): C => ({ ...core, store })
