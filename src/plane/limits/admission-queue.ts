// Known callers are never turned away for their number; they wait, and past a bound they get a retry time: after a boot storm as
// soon as the plane can serve them.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import { openRetrySpacing } from './retry-times.ts'

export type AdmissionQueue = {
  /** Call what is returned when the work is over. */
  enter(): (() => void) | Refusal
  waiting(): number
}

const shortestWaitMs = 1000
const measureEveryMs = 1000
/** Assumed until a crowd has been seen. */
const firstGuessPerSecond = 200

export const openAdmissionQueue = (clock: Clock, capacity: number): AdmissionQueue => {
  let inside = 0
  let perSecond = firstGuessPerSecond
  let finished = 0
  let measuredMs = 0
  let refusedMs = -Infinity
  const spacing = openRetrySpacing(clock)

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
      const apartMs = 1000 / perSecond
      return { ...refuse('BUSY'), retryAfterMs: spacing.nextMs(shortestWaitMs + apartMs, apartMs) }
    },
    waiting: () => inside,
  }
}
