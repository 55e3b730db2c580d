// How long a group of commits waits for company. A transaction, its fsync and the signed head cost as much for one commit as
// for many, so a group gathers while the event loop is busy with other callers, and runs in the first turn that has nothing
// else to do. A caller alone does not wait.

import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'

/** The longest a first commit waits. */
const longestWaitMs = 12
/** A turn of the event loop that took less had nothing else to do. */
const idleTurnMs = 0.05

/** `run` is called once, in a later turn. */
export const gatherCommits = (
  { clock, timers }: { readonly clock: Clock; readonly timers: Timers },
  enough: () => boolean,
  run: () => void,
): void => {
  const sinceMs = clock.monotonicMs()
  const look = (turnMs: number): void =>
    timers.soon(() => {
      const nowMs = clock.monotonicMs()
      if (nowMs - turnMs < idleTurnMs || nowMs - sinceMs > longestWaitMs || enough()) run()
      else look(nowMs)
    })
  look(sinceMs)
}
