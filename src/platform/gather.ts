// What is worth doing for many at once waits for company while the event loop is busy, and is done in the first turn that has nothing else to
// do. What comes alone does not wait.

import type { Clock } from './clock.ts'
import type { Timers } from './timers.ts'

export type GatherCore = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Pick<Timers, 'soon'> }

/** A turn of the event loop that took less had nothing else to do. */
const idleTurnMs = 0.05

/** `run` is called once, in a later turn: at the latest in the first one after `longestMs`, and before where there is enough. */
export const gather = (
  { clock, timers }: GatherCore,
  { longestMs, enough = () => false }: { readonly longestMs: number; readonly enough?: () => boolean },
  run: () => void,
): void => {
  const sinceMs = clock.monotonicMs()
  const look = (turnMs: number): void =>
    timers.soon(() => {
      const nowMs = clock.monotonicMs()
      if (nowMs - turnMs < idleTurnMs || nowMs - sinceMs > longestMs || enough()) run()
      else look(nowMs)
    })
  look(sinceMs)
}
