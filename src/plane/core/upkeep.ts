// Periodic tasks of a plane. Each task runs alone: one that is still under way is not started again.

import type { Cancel } from '#platform/timers.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Core } from './core.ts'

export type UpkeepTask = {
  readonly name: string
  /** `leader`: of all replicas one at a time. */
  readonly where: 'leader' | 'each'
  readonly everyMs: number
  /** The store of a leader commits nothing once another replica leads. */
  run(store: Store): Promise<void> | void
}

type Times = { readonly wallMs: number; readonly monotonicMs: number }

const tickMs = 1000

/**
 * When the interval has passed by either clock. Monotonic time stops while a machine sleeps, and the wall clock may be set: a
 * task must not wait for an hour that has already passed.
 */
export const isUpkeepDue = (everyMs: number, last: Times, now: Times): boolean => {
  // A timer may fire a little early; without this a task of one tick would run at every other one.
  const enoughMs = everyMs - tickMs / 2
  return now.monotonicMs - last.monotonicMs >= enoughMs || Math.abs(now.wallMs - last.wallMs) >= enoughMs
}

/** Stops further runs when called, and waits for none. */
export const startUpkeep = (
  { store, clock, timers, log }: Pick<Core, 'store' | 'clock' | 'timers' | 'log'>,
  tasks: readonly UpkeepTask[],
): Cancel => {
  const now = (): Times => ({ wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() })
  const started = tasks.map((task) => ({ task, last: now(), running: false }))
  let isOver = false
  const cancel = timers.every(tickMs, () => {
    for (const it of started) {
      if (it.running || !isUpkeepDue(it.task.everyMs, it.last, now())) continue
      it.running = true
      it.last = now()
      Promise.resolve()
        .then(() => it.task.run(store))
        .catch((error: unknown) => {
          if (error instanceof StaleReplica) log.info({ task: it.task.name }, 'another replica leads by now')
          // The store may be closed by now.
          else if (isOver) log.info({ err: error, task: it.task.name }, 'upkeep was cut short')
          else log.error({ err: error, task: it.task.name }, 'upkeep failed')
        })
        .finally(() => {
          it.running = false
        })
    }
  })
  return () => {
    isOver = true
    cancel()
  }
}
