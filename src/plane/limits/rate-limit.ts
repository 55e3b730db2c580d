// A rate limit a minute, for all keys together and for each. What is beyond the limits is counted, and reported once the minute is
// over. The memory is emptied with every minute.

import type { Clock } from '#platform/clock.ts'

export type RateLimits = { readonly perMinute: number; readonly perMinutePerKey: number }

export type RateLimit = {
  /** Whether one more of this key would be within the limits. */
  room(key: string): boolean
  /** One more. `over`: it was only counted. */
  take(key: string): 'within' | 'over'
  /** Until there is room again. */
  retryAfterMs(): number
  /** What was over the limits in minutes that have ended; asking empties the count. */
  takeCounted(): { readonly count: number; readonly keys: number } | null
}

type RateLimitOptions = {
  /** Beyond this number in a minute, keys are not counted: limiting them all would let some lock the others out. */
  readonly mostKeys?: number
}

const windowMs = 60_000
const shortestWaitMs = 1000
/** Of keys over the limits only the number is reported. */
const mostKeysCounted = 1024

/** `limits` is asked each time: a change holds at once. */
export const openRateLimit = (
  clock: Pick<Clock, 'monotonicMs'>,
  limits: () => RateLimits,
  { mostKeys = Infinity }: RateLimitOptions = {},
): RateLimit => {
  let startedMs = clock.monotonicMs()
  let taken = 0
  // Bounded by `perMinute`, since a key is only remembered while there is room for all, or by `mostKeys`.
  let byKey = new Map<string, number>()
  let over = 0
  let keysOver = new Set<string>()
  let counted: { count: number; keys: number } | null = null

  const roll = (): void => {
    const nowMs = clock.monotonicMs()
    if (nowMs - startedMs < windowMs) return
    if (over > 0) {
      counted = { count: (counted?.count ?? 0) + over, keys: Math.max(counted?.keys ?? 0, keysOver.size) }
    }
    startedMs = nowMs
    taken = 0
    over = 0
    byKey = new Map()
    keysOver = new Set()
  }
  const room = (key: string): boolean => {
    roll()
    const { perMinute, perMinutePerKey } = limits()
    return taken < perMinute && (byKey.get(key) ?? 0) < perMinutePerKey
  }

  return {
    room,
    take(key) {
      if (!room(key)) {
        over++
        if (keysOver.size < mostKeysCounted) keysOver.add(key)
        return 'over'
      }
      taken++
      if (byKey.has(key) || byKey.size < mostKeys) byKey.set(key, (byKey.get(key) ?? 0) + 1)
      return 'within'
    },
    retryAfterMs: () => Math.max(shortestWaitMs, startedMs + windowMs - clock.monotonicMs()),
    takeCounted() {
      roll()
      const report = counted
      counted = null
      return report
    },
  }
}
