// Known callers are never turned away for being many; they wait, and past a bound they are told when to come back. Each
// is given a slot of its own, so that a boot storm returns spread out and not all at once.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'

export type AdmissionQueue = {
  /** Call what is returned when the work is over. */
  enter(): (() => void) | Refusal
  waiting(): number
}

const longestWaitMs = 300_000
const measureEveryMs = 1000
/** Assumed until a crowd has been seen. */
const firstGuessPerSecond = 200

export const openAdmissionQueue = (clock: Clock, capacity: number): AdmissionQueue => {
  let inside = 0
  let perSecond = firstGuessPerSecond
  let finished = 0
  let measuredMs = 0
  let refusedMs = -Infinity
  let nextSlotMs = 0

  /** Only while callers are turned away does what comes out say how fast it goes: in quiet hours few come out. */
  const measure = (nowMs: number): void => {
    const crowded = nowMs - refusedMs <= measureEveryMs
    refusedMs = nowMs
    if (crowded && nowMs - measuredMs < measureEveryMs) return
    if (crowded) perSecond = Math.max(1, (finished * 1000) / (nowMs - measuredMs))
    finished = 0
    measuredMs = nowMs
  }

  return {
    enter() {
      if (inside < capacity) {
        inside++
        let left = false
        return () => {
          if (left) return
          left = true
          inside--
          finished++
        }
      }
      const nowMs = clock.monotonicMs()
      measure(nowMs)
      nextSlotMs = Math.max(nextSlotMs, nowMs + 1000) + 1000 / perSecond
      // Past the longest wait the slots start over: a caller that never comes back must not push the others out.
      if (nextSlotMs - nowMs > longestWaitMs) nextSlotMs = nowMs + 1000
      return { ...refuse('BUSY'), retryAfterMs: Math.ceil(nextSlotMs - nowMs) }
    },
    waiting: () => inside,
  }
}
