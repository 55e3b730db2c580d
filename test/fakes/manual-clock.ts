// A clock that stands still until a test moves it.

import type { Clock } from '#platform/clock.ts'

export type ManualClock = Clock & {
  /** Time passes: both clocks move. */
  advance(ms: number): void
  /** Someone sets the wall clock, forwards or back: monotonic time does not move. */
  set(nowMs: number): void
  /** Called after every move; how manual timers fire. */
  onMove(run: () => void): void
}

export const manualClock = (startMs: number): ManualClock => {
  let wallMs = startMs
  let monotonicMs = 0
  const followers: (() => void)[] = []
  const moved = (): void => followers.forEach((run) => run())
  return {
    nowMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`time does not run backwards: ${ms} ms; a clock set back is set()`)
      wallMs += ms
      monotonicMs += ms
      moved()
    },
    set(nowMs) {
      wallMs = nowMs
      moved()
    },
    onMove: (run) => void followers.push(run),
  }
}
