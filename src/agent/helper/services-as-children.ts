// Services of agent.toml as children of the helper, which end with it: for a host without systemd, and a helper started by hand.
// Those of a helper that was killed are ended by the next one, before it starts any.

import { markOf } from '#platform/process-mark.ts'
import { adoptServiceProcess } from '#platform/service-process.ts'
import type { Cancel, Timers } from '#platform/timers.ts'
import { startUserProcess, type UserProcess } from '#platform/user-process.ts'
import type { ServiceHost, ServiceOrder } from './listed-services.ts'
import { environmentOf } from './run-listed.ts'
import type { RunningChildren } from './running-children.ts'

const stopWithinMs = 10_000
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

export const servicesAsChildren = (timers: Timers, children: RunningChildren): ServiceHost => {
  const lives = new Map<string, Life>()
  const left = Promise.all(children.left().map((mark) => adoptServiceProcess(mark).stop(stopWithinMs)))
  /** Also those that are not in `lives` any more: a process may need a while to end. */
  const endings = new Set<Promise<void>>()
  let isClosed = false

  /** Also those that are not in `lives` any more. */
  const running = new Set<UserProcess>()
  const note = (): void => children.note([...running].flatMap(({ pid }) => (pid === null ? [] : [markOf(pid)])))

  /** One that cannot be started has ended, and is tried again as its policy says. */
  const begin = (life: Life): void => {
    const { command, user, cwd } = life.order
    const process = startUserProcess({ command, user, cwd, env: environmentOf(life.order) })
    life.process = process
    running.add(process)
    note()
    void process.ended.then(({ code, how }) => {
      running.delete(process)
      note()
      life.process = null
      life.ended = how
      life.lines = process.lastLines(shownLines)
      const { restart } = life.order
      if (life.over || restart === 'never' || (restart === 'on-failure' && code === 0)) return
      const waitMs = Math.min(longestRestartMs, firstRestartMs * 2 ** Math.min(life.restarts, 20))
      life.restarts += 1
      life.cancelRestart = timers.after(waitMs, () => begin(life), 'background')
    })
  }
  const end = (life: Life): Promise<void> => {
    life.over = true
    life.cancelRestart()
    if (lives.get(life.order.name) === life) lives.delete(life.order.name)
    const ending = (life.process?.stop(stopWithinMs) ?? Promise.resolve()).then(() => void endings.delete(ending))
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
