// Decide on a snapshot, commit by compare-and-set, tell the feed. Every flow ends in this loop: whoever loses a race
// reads again and decides again, so no flow holds a lock.

import type { Decided } from '#domain/core/decision.ts'
import { rowUnreadable, standInOf } from '#domain/core/node-change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Feed } from './feed.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'

export type CommitDeps = { readonly store: Pick<Store, 'commit'>; readonly feed: Pick<Feed, 'publish'> }

/** What the decision said, and what the store made of it. */
export type Done<D extends Decided> = Omit<D, 'kind'> & { readonly kind: 'committed'; readonly committed: Committed }

/** A race is lost to somebody who got on, so many in a row mean a crowd around one row, not a standstill. */
const tries = 8
const retryAfterMs = 1000

/** `decide` reads what it needs each time it is called: what it read before has changed. */
export const commitDecision = <D extends Decided>(
  deps: CommitDeps,
  decide: () => Promise<D | Refusal>,
): Promise<Done<D> | Refusal> => commitUnlessSo<D, never>(deps, decide)

/** The same for decisions that may find that nothing is to be written. */
export const commitUnlessSo = async <D extends Decided, U extends { readonly kind: 'unchanged' }>(
  deps: CommitDeps,
  decide: () => Promise<D | U | Refusal>,
): Promise<Done<D> | U | Refusal> => {
  for (let attempt = 1; attempt <= tries; attempt++) {
    const verdict = await decide()
    if (verdict.kind !== 'decided') return verdict
    const unreadable = standInOf(verdict.change)
    if (unreadable !== null) return rowUnreadable(unreadable)
    const outcome = await deps.store.commit(verdict.change)
    if (outcome === 'lost-race') continue
    deps.feed.publish(outcome)
    return { ...verdict, kind: 'committed', committed: outcome }
  }
  return { ...refuse('BUSY', 'many changes to the same record at once'), retryAfterMs }
}
