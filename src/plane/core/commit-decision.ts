// Decide on a snapshot, commit by compare-and-set, publish. Every flow commits through this file. A flow that loses a race
// reads and decides again, so no flow holds a lock.

import { type Change, type Decided, rowUnreadable, standInOf } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Node } from '#domain/core/node.ts'
import type { FencingToken } from '#plane/store/contract/replicas.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import type { CommitCore } from './core.ts'

/**
 * What was committed is published before this resolves. `lost-race`: nothing was written. A flow that may leave it at that,
 * because the same is decided again later anyway, uses this alone.
 */
export const commitOnce = async (
  { store, feed }: CommitCore,
  change: Change,
  fencingToken: FencingToken | null = null,
): Promise<Committed | 'lost-race'> => {
  const outcome = await (fencingToken === null ? store.commit(change) : store.commit(change, fencingToken))
  if (outcome !== 'lost-race') feed.publish(outcome)
  return outcome
}

/** A precondition that a decision about a node checks on the row it decides on. */
export type OnlyIf = (node: Node) => Refusal | null

/**
 * How often a flow decides. A race is lost to another flow that made progress, so this many losses in a row mean contention on
 * one row, an attack on it or a bug, not a deadlock.
 */
export type Tries<B> = { readonly tries: number; readonly onBusy: () => B }

/**
 * The one loop. `attempt` reads what it needs each time it is called: what it read before has changed. It answers
 * `lost-race` where its commit did not come through, and `decide-again` where it has to read what it has caused itself.
 */
export const retryLostRaces = async <T, B>(
  { tries, onBusy }: Tries<B>,
  attempt: () => Promise<T | 'lost-race' | 'decide-again'>,
): Promise<T | B> => {
  for (let tried = 0; tried < tries; tried++) {
    const outcome = await attempt()
    if (outcome !== 'lost-race' && outcome !== 'decide-again') return outcome
  }
  return onBusy()
}

const retryAfterMs = 1000

export const busyOver = (what: 'record' | 'node' | 'alert') => (): Refusal => ({
  ...refuse('BUSY', `many changes to the same ${what} at once`),
  retryAfterMs,
})

/** For requests of nodes: a node that is turned away comes back, and a storm of them is what it comes back into. */
export const nodeTries: Tries<Refusal> = { tries: 16, onBusy: busyOver('node') }

const usualTries: Tries<Refusal> = { tries: 8, onBusy: busyOver('record') }

/** What the decision said, and what the store made of it. */
export type Done<D extends Decided> = D extends Decided
  ? Omit<D, 'kind'> & { readonly kind: 'committed'; readonly committed: Committed }
  : never

/**
 * Commits what `decide` decides. Every other verdict, such as a refusal or that nothing is to be written, is the answer as
 * it is.
 */
export const commitDecision = <V extends { readonly kind: string }>(
  core: CommitCore,
  decide: () => Promise<V>,
  tries: Tries<Refusal> = usualTries,
): Promise<Done<Extract<V, Decided>> | Exclude<V, Decided> | Refusal> =>
  retryLostRaces(tries, async () => {
    const verdict = await decide()
    if (!isDecided(verdict)) return verdict as Exclude<V, Decided>
    const unreadable = standInOf(verdict.change)
    if (unreadable !== null) return rowUnreadable(unreadable)
    const committed = await commitOnce(core, verdict.change)
    if (committed === 'lost-race') return committed
    return { ...verdict, kind: 'committed', committed } as unknown as Done<Extract<V, Decided>>
  })

const isDecided = (verdict: { readonly kind: string }): verdict is Decided => verdict.kind === 'decided'
