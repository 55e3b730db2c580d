// What failing and unknown callers may cost (ruling 2): so many attempts a minute overall and from one source. Within
// it every refusal is journaled; beyond it they are counted, one entry a minute. Known callers never wait for it.

import type { Clock } from '#platform/clock.ts'
import { sourceOf } from '#platform/source-shares.ts'

export type StrangersBudget = {
  /** Whether one more failing attempt from there would still be heard. */
  room(source: string): boolean
  /** A caller failed. `over`: the budget is used up, and the attempt was only counted. */
  charge(source: string): 'within' | 'over'
  /** Until there is room again. */
  retryAfterMs(): number
  /** Attempts beyond the budget in windows that are over; asking empties the count. */
  takeCounted(): { readonly count: number; readonly sources: number } | null
}

export type BudgetLimits = { readonly perMinute: number; readonly perMinutePerSource: number }

const windowMs = 60_000

/** What each of so many replicas allows, so that together they allow what one does. */
export const sharedLimits = ({ perMinute, perMinutePerSource }: BudgetLimits, replicas: number): BudgetLimits => ({
  perMinute: Math.ceil(perMinute / replicas),
  perMinutePerSource: Math.ceil(perMinutePerSource / replicas),
})

export const openStrangersBudget = (clock: Clock, limits: () => BudgetLimits): StrangersBudget => {
  let startedMs = clock.monotonicMs()
  let heard = 0
  // Bounded by `perMinute`: a source is only remembered while attempts are within the overall budget.
  let bySource = new Map<string, number>()
  let refused = 0
  let refusedSources = new Set<string>()
  let counted: { count: number; sources: number } | null = null
  const sourcesRemembered = 1024

  const roll = (): void => {
    const nowMs = clock.monotonicMs()
    if (nowMs - startedMs < windowMs) return
    if (refused > 0) {
      counted = {
        count: (counted?.count ?? 0) + refused,
        sources: Math.max(counted?.sources ?? 0, refusedSources.size),
      }
    }
    startedMs = nowMs
    heard = 0
    refused = 0
    bySource = new Map()
    refusedSources = new Set()
  }

  const roomFor = (group: string): boolean => {
    roll()
    const { perMinute, perMinutePerSource } = limits()
    return heard < perMinute && (bySource.get(group) ?? 0) < perMinutePerSource
  }

  return {
    room: (source) => roomFor(sourceOf(source)),
    charge(source) {
      const group = sourceOf(source)
      if (!roomFor(group)) {
        refused++
        if (refusedSources.size < sourcesRemembered) refusedSources.add(group)
        return 'over'
      }
      heard++
      bySource.set(group, (bySource.get(group) ?? 0) + 1)
      return 'within'
    },
    retryAfterMs: () => Math.max(1000, startedMs + windowMs - clock.monotonicMs()),
    takeCounted() {
      roll()
      const taken = counted
      counted = null
      return taken
    },
  }
}
