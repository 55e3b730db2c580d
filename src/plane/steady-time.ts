// What is removed for good is judged by this time and not by the wall clock: one bad second of a clock that was set
// months ahead would cost every node the record of its certificate. It may lag behind the wall clock, never lead it.

import type { Clock } from '#platform/clock.ts'

export const openSteadyTime = (clock: Clock): (() => number) => {
  const aheadMs = clock.nowMs() - clock.monotonicMs()
  return () => Math.min(clock.nowMs(), aheadMs + clock.monotonicMs())
}
