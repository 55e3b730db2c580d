// How much all of several senders may send in a second, each piece in the order in which it was asked for.

import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'

export type Bandwidth = {
  /** Waits until so many more bytes may be sent. */
  take(bytes: number): Promise<void>
}

/** How often the load is looked at: of a shorter time it says little. */
const loadEveryMs = 500
const busyFrom = 0.5

export type Rates = { readonly busy: number; readonly idle: number }

/**
 * The lower rate while the event loop has other work, such as a boot storm. `loopLoad`: the share of the time since its last call in
 * which it had work.
 */
export const rateByLoad = (
  clock: Pick<Clock, 'monotonicMs'>,
  loopLoad: () => number,
  { busy, idle }: Rates,
): (() => number) => {
  let rate = busy
  let lookedMs = clock.monotonicMs()
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - lookedMs >= loadEveryMs) {
      lookedMs = nowMs
      rate = loopLoad() < busyFrom ? idle : busy
    }
    return rate
  }
}

/** What may be sent at once after a time in which nothing was. */
const burstMs = 20

/** `bytesPerSecond` is asked for each piece: a change holds at once. */
export const openBandwidth = (
  clock: Pick<Clock, 'monotonicMs'>,
  timers: Pick<Timers, 'after'>,
  bytesPerSecond: () => number,
): Bandwidth => {
  /** When what was taken has been sent. */
  let sentAtMs = -Infinity
  return {
    take(bytes) {
      const nowMs = clock.monotonicMs()
      const startMs = Math.max(nowMs - burstMs, sentAtMs)
      sentAtMs = startMs + (bytes * 1000) / bytesPerSecond()
      const waitMs = startMs - nowMs
      return waitMs <= 0
        ? Promise.resolve()
        : new Promise((resolve) => void timers.after(waitMs, resolve, 'background'))
    },
  }
}
