// How long to wait before the next try, so that ten thousand agents do not come back in the same second.

import { doublingWaitMs } from '#platform/timers.ts'

/** Full jitter: anywhere between nothing and a bound that doubles with every failure. */
export const fullJitterMs = (attempt: number, firstMs: number, capMs: number, unit: number): number =>
  Math.round(unit * doublingWaitMs(attempt, firstMs, capMs))

/** A retry time that the plane named is kept: never earlier, and spread a little so that equal ones do not collide. */
export const notBeforeMs = (delayMs: number, retryAfterMs: number | null, unit: number): number =>
  retryAfterMs === null ? delayMs : Math.max(delayMs, Math.round(retryAfterMs * (1 + unit / 10)))

const shortestMs = 1_000

/**
 * A wait never outlives what it waits for: at most an eighth of the lifetime that remains, so that several tries are left.
 * What has expired already caps nothing.
 */
export const cappedByLifetimeMs = (delayMs: number, remainingMs: number): number =>
  remainingMs <= 0 ? delayMs : Math.min(delayMs, Math.max(shortestMs, Math.round(remainingMs / 8)))
