// What every part of the plane is built on. A part names those it uses (`Pick<Core, 'store' | 'clock'>`) beside the parts that
// are its own; only main.ts puts them together.

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
export type FlowCore = Pick<Core, 'store' | 'clock'> & { readonly feed: Pick<Feed, 'publish'> }
