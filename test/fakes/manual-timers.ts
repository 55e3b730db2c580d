// Timers that fire when a manual clock passes them, each at its own moment and in the order of their moments.

import type { Timers } from '#platform/timers.ts'
import type { ManualClock } from './manual-clock.ts'

export type ManualTimers = Timers & {
  /** How many are waiting, repeating ones included. */
  waiting(): number
  /** Advances the clock step by step, so that every timer due on the way sees the time it was set for. */
  advance(ms: number): void
}

type Timer = { dueMs: number; order: number; everyMs: number | null; run: () => void }

const longestMs = 24 * 24 * 3600 * 1000

export const manualTimers = (clock: ManualClock): ManualTimers => {
  const timers = new Set<Timer>()
  let order = 0
  const add = (ms: number, everyMs: number | null, run: () => void): (() => void) => {
    const timer = { dueMs: clock.monotonicMs() + Math.max(0, ms), order: order++, everyMs, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const earliest = (byMs: number): Timer | undefined =>
    [...timers].filter((timer) => timer.dueMs <= byMs).sort((a, b) => a.dueMs - b.dueMs || a.order - b.order)[0]
  const fire = (timer: Timer): void => {
    if (timer.everyMs === null) timers.delete(timer)
    else timer.dueMs += timer.everyMs
    timer.run()
  }
  clock.onMove(() => {
    for (let timer = earliest(clock.monotonicMs()); timer; timer = earliest(clock.monotonicMs())) fire(timer)
  })
  return {
    after(ms, run) {
      if (!(ms <= longestMs)) throw new RangeError(`a timer of ${ms} ms cannot be kept; sweep by the clock instead`)
      return add(ms, null, run)
    },
    every(ms, run) {
      if (!(ms > 0)) throw new RangeError(`a repeating timer needs an interval, not ${ms} ms`)
      return add(ms, ms, run)
    },
    soon: (run) => void setImmediate(run),
    waiting: () => timers.size,
    advance(ms) {
      const endMs = clock.monotonicMs() + ms
      for (let timer = earliest(endMs); timer; timer = earliest(endMs)) {
        // The clock's own move fires it, and whatever else is due at that moment.
        clock.advance(Math.max(0, timer.dueMs - clock.monotonicMs()))
      }
      clock.advance(endMs - clock.monotonicMs())
    },
  }
}
