// Revocation lists are dated by this time and not by the wall clock: a list from one bad second of a clock that was set
// months ahead would have to be outlived. It may lag behind the wall clock, never lead it. It does not help against a clock
// that was wrong when the process started: what is removed for good goes by the lived time (lived-time.ts).

import type { Clock } from '#platform/clock.ts'

export const openSteadyTime = (clock: Clock): (() => number) => {
  const aheadMs = clock.nowMs() - clock.monotonicMs()
  return () => Math.min(clock.nowMs(), aheadMs + clock.monotonicMs())
}
