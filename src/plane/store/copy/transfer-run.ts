// How a long transfer is carried out: in turns, so that it can be stopped and tells how far it has come.

import { turn, type Timers } from '#platform/timers.ts'
import { TransferRefused } from './transfer-errors.ts'

export type TransferProgress = { readonly doing: string; readonly done: number; readonly total: number }

export type TransferRun = {
  readonly timers: Timers
  readonly stop: AbortSignal
  onProgress(progress: TransferProgress): void
}

const recordsPerTurn = 500

/** Call for every record; every so many it lets others have their turn. Throws when asked to stop. */
export const startSteps = (run: TransferRun, doing: string, total: number): (() => Promise<void>) => {
  let done = 0
  run.onProgress({ doing, done, total })
  return async () => {
    if (++done % recordsPerTurn !== 0) return
    run.onProgress({ doing, done, total })
    await turn(run.timers)
    if (run.stop.aborted)
      throw new TransferRefused('STOPPED', 'it was stopped before it was done; nothing was kept', 'Start it again')
  }
}
