// Known callers are never turned away for being many; they wait, and past a bound they are told when to come back. Each
// is given a slot of its own, so that a boot storm returns spread out and not all at once.

import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Clock } from '#platform/clock.ts'

export type AdmissionQueue = {
  /** Call what is returned when the work is over. */
  enter(): (() => void) | Refusal
  waiting(): number
}

const longestWaitMs = 300_000
/** Assumed until the first completions have been seen. */
const firstGuessPerSecond = 200

export const openAdmissionQueue = (clock: Clock, capacity: number): AdmissionQueue => {
  let inside = 0
  let perSecond = firstGuessPerSecond
  let finished = 0
  let measuredMs = clock.monotonicMs()
  let nextSlotMs = 0

  const measure = (): void => {
    const elapsedMs = clock.monotonicMs() - measuredMs
    if (elapsedMs < 1000) return
    if (finished > 0) perSecond = Math.max(1, (finished * 1000) / elapsedMs)
    finished = 0
    measuredMs = clock.monotonicMs()
  }

  return {
    enter() {
      measure()
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
      nextSlotMs = Math.max(nextSlotMs, nowMs + 1000) + 1000 / perSecond
      // Past the longest wait the slots start over: a caller that never comes back must not push the others out.
      if (nextSlotMs - nowMs > longestWaitMs) nextSlotMs = nowMs + 1000
      return { ...refuse('BUSY'), retryAfterMs: Math.ceil(nextSlotMs - nowMs) }
    },
    waiting: () => inside,
  }
}
