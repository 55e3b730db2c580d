// A withdrawn authority throws out all its nodes in one moment, and all of them come back through recovery. Each is told
// when its turn is, so that they do not come in the same second.

import type { Clock } from '#platform/clock.ts'

export type ReturnSlots = {
  /** How long the next one waits. */
  nextMs(): number
}

/** Well below what a plane signs a second, so that renewals and enrollments find room. */
const perSecond = 50
/** Past it the slots start over: somebody who asks again and again must not push the others out. */
const longestWaitMs = 300_000

export const openReturnSlots = (clock: Pick<Clock, 'monotonicMs'>): ReturnSlots => {
  let nextSlotMs = -Infinity
  return {
    nextMs() {
      const nowMs = clock.monotonicMs()
      if (nextSlotMs < nowMs || nextSlotMs - nowMs > longestWaitMs) nextSlotMs = nowMs
      const waitMs = Math.ceil(nextSlotMs - nowMs)
      nextSlotMs += 1000 / perSecond
      return waitMs
    },
  }
}
