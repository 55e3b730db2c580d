// The time the agent believes. A wall clock that is wrong by years stays wrong until it is set. Meanwhile the agent carries the
// time that the plane stated forward by monotonic time, which cannot be set.

import type { Clock } from '#platform/clock.ts'

export type JudgedClock = Clock & {
  /** The correction that is added to the system's clock; 0 while that clock is right, as far as the agent knows. */
  offsetMs(): number
  /** What the machine says, without the correction. */
  reading(): ClockReading
  /**
   * `trueMs`: the time now, from a signed statement or an authenticated answer. Nothing else may be learned from.
   * `askedAt`: the reading before the question was sent. False: the clock jumped since, and nothing is learned.
   */
  learn(trueMs: number, toleranceMs: number, askedAt: ClockReading): boolean
}

export type ClockReading = { readonly wallMs: number; readonly monotonicMs: number }

/** How far the wall clock has jumped between two readings. */
export const jumpMs = (before: ClockReading, now: ClockReading): number =>
  now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs)

/** The true time at one moment of the monotonic clock, and how far from it the system's may be. */
type StatedTime = { readonly trueMs: number; readonly atMonotonicMs: number; readonly toleranceMs: number }

export const openJudgedClock = (system: Clock): JudgedClock => {
  let stated: StatedTime | null = null

  const offsetMs = (): number => {
    if (stated === null) return 0
    const trueMs = stated.trueMs + (system.monotonicMs() - stated.atMonotonicMs)
    const offset = Math.round(trueMs - system.nowMs())
    if (Math.abs(offset) > stated.toleranceMs) return offset
    // The clock was set right. The stated time is dropped for good: monotonic time stops while a machine sleeps, so it would
    // later contradict a clock that is right.
    stated = null
    return 0
  }

  const reading = (): ClockReading => ({ wallMs: system.nowMs(), monotonicMs: system.monotonicMs() })

  return {
    nowMs: () => system.nowMs() + offsetMs(),
    monotonicMs: () => system.monotonicMs(),
    offsetMs,
    reading,
    learn: (trueMs, toleranceMs, askedAt) => {
      // The machine slept, or its clock was set, while the answer was on its way: an answer from before the jump is as old as the
      // jump is long, and the agent would believe that old time until it asks again.
      if (Math.abs(jumpMs(askedAt, reading())) > toleranceMs) return false
      stated = { trueMs, atMonotonicMs: system.monotonicMs(), toleranceMs }
      return true
    },
  }
}
