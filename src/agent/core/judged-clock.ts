// The time the agent believes. A wall clock that is wrong by years stays wrong until somebody sets it; what the plane said
// meanwhile is carried on by monotonic time, which nobody can set.

import type { Clock } from '#platform/clock.ts'

export type JudgedClock = Clock & {
  /** What is added to the system's clock; 0 while that one is right, as far as anybody has told us. */
  offsetMs(): number
  /** `trueMs`: the time now, from a signed statement or an authenticated answer. Nothing else may be learned from. */
  learn(trueMs: number, toleranceMs: number): void
}

/** The true time at one moment of the monotonic clock, and how far from it the system's may be. */
type Told = { readonly trueMs: number; readonly atMonotonicMs: number; readonly toleranceMs: number }

export const openJudgedClock = (system: Clock): JudgedClock => {
  let told: Told | null = null

  const offsetMs = (): number => {
    if (told === null) return 0
    const trueMs = told.trueMs + (system.monotonicMs() - told.atMonotonicMs)
    const offset = Math.round(trueMs - system.nowMs())
    if (Math.abs(offset) > told.toleranceMs) return offset
    // Somebody has set the clock right. What was told is forgotten for good: monotonic time stands still while a machine
    // sleeps, so that later it would contradict a clock that is right.
    told = null
    return 0
  }

  return {
    nowMs: () => system.nowMs() + offsetMs(),
    monotonicMs: () => system.monotonicMs(),
    offsetMs,
    learn: (trueMs, toleranceMs) => {
      told = { trueMs, atMonotonicMs: system.monotonicMs(), toleranceMs }
    },
  }
}
