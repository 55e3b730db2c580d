// When callers that are turned away come back. Each is given a retry time of its own, so that a crowd returns spread out and not
// all at once.

import type { Clock } from '#platform/clock.ts'

export type RetrySpacing = {
  /** How long the next caller waits: no less than `firstMs`, and `apartMs` behind the caller before. */
  nextMs(firstMs: number, apartMs: number): number
}

/** Past it the retry times start over: a caller that asks again and again, or never comes back, must not push the others out. */
const longestWaitMs = 300_000

export const openRetrySpacing = (clock: Pick<Clock, 'monotonicMs'>): RetrySpacing => {
  let lastMs = -Infinity
  return {
    nextMs(firstMs, apartMs) {
      const nowMs = clock.monotonicMs()
      const nextMs = Math.max(nowMs + firstMs, lastMs + apartMs)
      lastMs = nextMs - nowMs > longestWaitMs ? nowMs + firstMs : nextMs
      return Math.ceil(lastMs - nowMs)
    },
  }
}

/**
 * A withdrawn authority shuts out all its nodes at one moment, and all of them come back through recovery. Each gets a retry
 * time.
 */
export type RetryTimes = {
  /** How long the next one waits. */
  nextMs(): number
}

/** Well below what a plane signs a second, so that renewals and enrollments find room. */
const returnsPerSecond = 50

export const openRetryTimes = (clock: Pick<Clock, 'monotonicMs'>): RetryTimes => {
  const spacing = openRetrySpacing(clock)
  return { nextMs: () => spacing.nextMs(0, 1000 / returnsPerSecond) }
}
