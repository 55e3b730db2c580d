// What failing and anonymous callers may cost (ruling 2): a number of attempts a minute overall and from one source. Within the
// budget every refusal is journaled; beyond it they are counted, one entry a minute. Authenticated callers never wait for it.

import type { Clock } from '#platform/clock.ts'
import { sourceOf } from '#platform/source-shares.ts'
import { openRateLimit } from './rate-limit.ts'

export type CallerBudget = {
  /** Whether the budget allows one more failing attempt from there. */
  room(source: string): boolean
  /** A caller failed. `over`: the budget is used up, and the attempt was only counted. */
  charge(source: string): 'within' | 'over'
  /** Until there is room again. */
  retryAfterMs(): number
  /** Attempts beyond the budget in windows that are over; asking empties the count. */
  takeCounted(): { readonly count: number; readonly sources: number } | null
}

export type BudgetLimits = { readonly perMinute: number; readonly perMinutePerSource: number }

/** The share of each replica, so that all replicas together allow what one does. */
export const sharedLimits = ({ perMinute, perMinutePerSource }: BudgetLimits, replicas: number): BudgetLimits => ({
  perMinute: Math.ceil(perMinute / replicas),
  perMinutePerSource: Math.ceil(perMinutePerSource / replicas),
})

export const openCallerBudget = (clock: Clock, limits: () => BudgetLimits): CallerBudget => {
  const limit = openRateLimit(clock, () => {
    const { perMinute, perMinutePerSource } = limits()
    return { perMinute, perMinutePerKey: perMinutePerSource }
  })
  return {
    room: (source) => limit.room(sourceOf(source)),
    charge: (source) => limit.take(sourceOf(source)),
    retryAfterMs: () => limit.retryAfterMs(),
    takeCounted() {
      const counted = limit.takeCounted()
      return counted === null ? null : { count: counted.count, sources: counted.keys }
    },
  }
}
