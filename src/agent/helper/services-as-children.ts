// Services of agent.toml as children of the helper, which end with it: for a host without systemd, and a helper started by hand.
// Those of a helper that was killed are ended by the next one, before it starts any.

import type { Log } from '#platform/log.ts'
import { markOf, type ProcessMark } from '#platform/process-mark.ts'
import { adoptServiceProcess } from '#platform/service-process.ts'
import { doublingWaitMs, type Cancel, type Timers } from '#platform/timers.ts'
import { startUserProcess, type UserProcess } from '#platform/user-process.ts'
import type { ServiceHost, ServiceOrder } from './listed-services.ts'
import { environmentOf } from './run-listed.ts'
import type { RunningChildren } from './running-children.ts'

const stopWithinMs = 10_000
/** For the kernel to end what was killed. */
const endWithinMs = 5_000
const shownLines = 5
const firstRestartMs = 500
const longestRestartMs = 60_000

type Life = {
  readonly order: ServiceOrder
  process: UserProcess | null
  restarts: number
  ended: string | null
  lines: readonly string[]
  over: boolean
  cancelRestart: Cancel
}

export const servicesAsChildren = (timers: Timers, children: RunningChildren, log: Log): ServiceHost => {
  const lives = new Map<string, Life>()
  /** One that cannot be killed, of another user or in a call of the kernel that hangs, holds up no other. */
  const stopped = async (process: Pick<UserProcess, 'stop'>, pid: number | null): Promise<void> => {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = timers.after(stopWithinMs + endWithinMs, () => {
      log.error({ pid }, 'a service does not end: it is left running, and what is asked for is started beside it')
      resolve()
    })
    await Promise.race([process.stop(stopWithinMs), late]).finally(cancel)
  }
  /** Of all that has not ended, also those that were given up. Taken at the start of each: its pid may be that of another later. */
  const marks = new Set<ProcessMark>(children.left())
  const left = Promise.all(
    [...marks].map((mark) => {
      const process = adoptServiceProcess(mark)
      void process.ended.then(() => marks.delete(mark))
      return stopped(process, mark.pid)
    }),
  )
  /** Also those that are not in `lives` any more: a process may need a while to end. */
  const endings = new Set<Promise<void>>()
  let isClosed = false

  const note = (): void => children.note([...marks])

  /** One that cannot be started has ended, and is tried again as its policy says. */
  const begin = (life: Life): void => {
    const { command, user, cwd } = life.order
    const process = startUserProcess({ command, user, cwd, env: environmentOf(life.order) })
    life.process = process
    const mark = process.pid === null ? null : markOf(process.pid)
    if (mark !== null) marks.add(mark)
    note()
    const { name: service, restart } = life.order
    if (process.pid !== null) log.info({ service, pid: process.pid }, 'a service was started')
    void process.ended.then(({ code, how }) => {
      if (mark !== null) marks.delete(mark)
      note()
      life.process = null
      life.ended = how
      life.lines = process.lastLines(shownLines)
      if (life.over) return log.info({ service, pid: process.pid, how }, 'a service was stopped')
      if (restart === 'never' || (restart === 'on-failure' && code === 0))
        return log.info({ service, pid: process.pid, how }, 'a service has ended, and is left so')
      const waitMs = doublingWaitMs(life.restarts, firstRestartMs, longestRestartMs)
      log.warn({ service, pid: process.pid, how, waitMs }, 'a service has ended; it is started again')
      life.restarts += 1
      life.cancelRestart = timers.after(waitMs, () => begin(life), 'background')
    })
  }
  const end = (life: Life): Promise<void> => {
    life.over = true
    life.cancelRestart()
    if (lives.get(life.order.name) === life) lives.delete(life.order.name)
    const { process } = life
    const stop = process === null ? Promise.resolve() : stopped(process, process.pid)
    const ending = stop.then(() => void endings.delete(ending))
    endings.add(ending)
    return ending
  }
  const stop = async (name: string): Promise<void> => {
    const life = lives.get(name)
    if (life !== undefined) await end(life)
  }
  return {
    start: async (order) => {
      const before = lives.get(order.name)?.order
      if (before?.digest === order.digest && before.listing === order.listing) return 'kept'
      await left
      await stop(order.name)
      if (isClosed) throw new Error('the helper is ending')
      const life: Life = {
        order,
        process: null,
        restarts: 0,
        ended: null,
        lines: [],
        over: false,
        cancelRestart: () => {},
      }
      lives.set(order.name, life)
      begin(life)
      return 'started'
    },
    stop,
    started: () =>
      Promise.resolve([...lives.values()].map(({ order: { name, digest, listing } }) => ({ name, digest, listing }))),
    status: () =>
      Promise.resolve(
        [...lives.values()].map(({ order, process, restarts, ended, lines }) => ({
          name: order.name,
          digest: order.digest,
          state: process === null ? 'ended' : 'running',
          restarts,
          pid: process?.pid ?? null,
          ended,
          lines: [...(process?.lastLines(shownLines) ?? lines)],
          // They take a control group, which a child has not.
          unapplied: Object.entries(order.limits).flatMap(([name, limit]) =>
            limit === null ? [] : [`limits.${name}`],
          ),
        })),
      ),
    close: async () => {
      isClosed = true
      for (const life of lives.values()) void end(life)
      await Promise.all([left, ...endings])
    },
  }
}
