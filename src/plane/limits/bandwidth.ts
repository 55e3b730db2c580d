// How much all of several senders may send in a second, each piece in the order in which it was asked for.

import type { Clock } from '#platform/clock.ts'
import { sleep, type Timers } from '#platform/timers.ts'

export type Bandwidth = {
  /** Waits until so many more bytes may be sent. */
  take(bytes: number): Promise<void>
}

/** What may be sent at once after a time in which nothing was. */
const burstMs = 20

export const openBandwidth = (
  clock: Pick<Clock, 'monotonicMs'>,
  timers: Pick<Timers, 'after'>,
  bytesPerSecond: number,
): Bandwidth => {
  /** When what was taken has been sent. */
  let sentAtMs = -Infinity
  return {
    take(bytes) {
      const nowMs = clock.monotonicMs()
      const startMs = Math.max(nowMs - burstMs, sentAtMs)
      sentAtMs = startMs + (bytes * 1000) / bytesPerSecond
      const waitMs = startMs - nowMs
      return waitMs <= 0 ? Promise.resolve() : sleep(timers, waitMs, 'background')
    },
  }
}
