// When callers that are turned away come back. Each is given a slot of its own, so that a crowd returns spread out and not
// all at once.

import type { Clock } from '#platform/clock.ts'

export type SlotHandOut = {
  /** How long the next caller waits: no less than `firstMs`, and `apartMs` behind the caller before. */
  nextMs(firstMs: number, apartMs: number): number
}

/** Past it the slots start over: a caller that asks again and again, or never comes back, must not push the others out. */
const longestWaitMs = 300_000

export const openSlotHandOut = (clock: Pick<Clock, 'monotonicMs'>): SlotHandOut => {
  let lastSlotMs = -Infinity
  return {
    nextMs(firstMs, apartMs) {
      const nowMs = clock.monotonicMs()
      const slotMs = Math.max(nowMs + firstMs, lastSlotMs + apartMs)
      lastSlotMs = slotMs - nowMs > longestWaitMs ? nowMs + firstMs : slotMs
      return Math.ceil(lastSlotMs - nowMs)
    },
  }
}

/**
 * A withdrawn authority shuts out all its nodes at one moment, and all of them come back through recovery. Each gets a retry
 * time.
 */
export type ReturnSlots = {
  /** How long the next one waits. */
  nextMs(): number
}

/** Well below what a plane signs a second, so that renewals and enrollments find room. */
const returnsPerSecond = 50

export const openReturnSlots = (clock: Pick<Clock, 'monotonicMs'>): ReturnSlots => {
  const slots = openSlotHandOut(clock)
  return { nextMs: () => slots.nextMs(0, 1000 / returnsPerSecond) }
}
