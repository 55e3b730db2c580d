// What a plane does by itself, on the clock. Each task runs alone: one that is still under way is not started again.

import type { Cancel, Timers } from '#platform/timers.ts'
import type { Log } from '#platform/log.ts'

export type UpkeepTask = {
  readonly name: string
  readonly everyMs: number
  run(): Promise<void> | void
}

/** Stops further runs when called, and waits for none. */
export const startUpkeep = (tasks: readonly UpkeepTask[], timers: Timers, log: Log): Cancel => {
  const cancels = tasks.map((task) => {
    let running = false
    return timers.every(task.everyMs, () => {
      if (running) return
      running = true
      Promise.resolve()
        .then(() => task.run())
        .catch((error: unknown) => log.error({ err: error, task: task.name }, 'upkeep failed'))
        .finally(() => {
          running = false
        })
    })
  })
  return () => {
    for (const cancel of cancels) cancel()
  }
}
