// Which share of the fleet would recover without an operator, and why the rest would not. It reads every node, so the result is
// kept for a while and shared by callers.

import { isToRecover, recoverabilityOf, type Recoverability } from '#domain/core/recoverability.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { everyNode } from './pages.ts'

export type RecoverabilityCounts = {
  /** Every node that has something to recover. */
  readonly nodes: number
  readonly proven: number
  /** Of those not proven: the commonest first. */
  readonly why: readonly { readonly why: string; readonly count: number }[]
}

type Reading = Pick<Store, 'nodes' | 'profiles' | 'rehearsedAtMs'>

const keptMs = 10_000
const pageSize = 200
/** Codes in reasons come from nodes; more kinds than these are one. */
const mostReasons = 64
const otherReasons = 'other'

/** Not older than ten seconds, however often it is called. */
export const recoverabilityCounts = (
  store: Reading,
  clock: Clock,
  timers: Pick<Timers, 'soon'>,
): (() => Promise<RecoverabilityCounts>) => {
  let known: { readonly counts: Promise<RecoverabilityCounts>; readonly sinceMs: number } | null = null
  return () => {
    const nowMs = clock.monotonicMs()
    if (known !== null && nowMs - known.sinceMs < keptMs) return known.counts
    const counts = count(store, clock, timers)
    const mine = { counts, sinceMs: nowMs }
    known = mine
    // Waiting callers get the failure; the next caller tries again.
    counts.catch(() => {
      if (known === mine) known = null
    })
    return counts
  }
}

const count = async (store: Reading, clock: Clock, timers: Pick<Timers, 'soon'>): Promise<RecoverabilityCounts> => {
  const profiles = await profilesByName(store)
  const reasons = new Map<string, number>()
  let nodes = 0
  let proven = 0
  for await (const node of everyNode(store, { limit: pageSize, timers })) {
    const profile = profiles.get(node.profile)
    if (profile !== undefined && !isToRecover(node, profile)) continue
    nodes++
    const { recoverable, why } = await recoverabilityNow(store, node, profiles, clock.nowMs())
    if (recoverable) proven++
    else {
      const reason = reasons.has(why) || reasons.size < mostReasons ? why : otherReasons
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    }
  }
  const why = [...reasons].map(([reason, times]) => ({ why: reason, count: times }))
  return { nodes, proven, why: why.toSorted((a, b) => b.count - a.count || a.why.localeCompare(b.why)) }
}

export type ProfilesByName = ReadonlyMap<string, Profile>

export const profilesByName = async (store: Pick<Store, 'profiles'>): Promise<ProfilesByName> =>
  new Map((await store.profiles()).map(({ value }) => [value.name, value]))

/** Asks when it last rehearsed only where that matters. */
export const recoverabilityNow = async (
  store: Pick<Store, 'rehearsedAtMs'>,
  node: Node,
  profiles: ProfilesByName,
  nowMs: number,
): Promise<Recoverability> => {
  const profile = profiles.get(node.profile)
  if (profile === undefined) return { recoverable: false, why: 'no profile' }
  const byRecord = recoverabilityOf(node, profile, null, nowMs)
  if (byRecord.recoverable || node.rehearsal?.outcome !== 'passed') return byRecord
  return recoverabilityOf(node, profile, await store.rehearsedAtMs(node.id), nowMs)
}
