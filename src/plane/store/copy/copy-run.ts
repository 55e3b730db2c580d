// How a long copy is carried out: in turns, so that it can be stopped and reports its progress.

import type { Clock } from '#platform/clock.ts'
import { turn, type Timers } from '#platform/timers.ts'
import { CopyRefused } from './copy-refusal.ts'

export type CopyProgress = { readonly doing: string; readonly done: number; readonly total: number }

export type CopyRun = {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly timers: Timers
  readonly stop: AbortSignal
  onProgress(progress: CopyProgress): void
}

const recordsATurn = 500

/** Called for every record; yields to other work every few records. Throws when asked to stop. */
export const startSteps = (run: CopyRun, doing: string, total: number): (() => Promise<void>) => {
  let done = 0
  run.onProgress({ doing, done, total })
  return async () => {
    if (++done % recordsATurn !== 0) return
    run.onProgress({ doing, done, total })
    await turn(run.timers)
    if (run.stop.aborted)
      throw new CopyRefused('STOPPED', 'it was stopped before it was done; nothing was kept', 'Start it again')
  }
}
