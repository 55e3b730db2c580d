// Whose turn it is. What runs for long is counted by its kind: slow checks hold up no reload, no service and no output. One of each
// name runs at a time; further ones of a kind wait for a while, and are then refused.

import type { Timers } from '#platform/timers.ts'
import { refused, type Refused } from './verbs.ts'

const kinds = {
  reload: { atOnce: 4, waiting: 12 },
  service: { atOnce: 8, waiting: 56 },
  check: { atOnce: 8, waiting: 24 },
} as const

type Kind = keyof typeof kinds

/** Of all kinds together: a connection that takes more than these is never kept from its next line by them. */
export const mostTurns = Object.values(kinds).reduce((sum, { atOnce, waiting }) => sum + atOnce + waiting, 0)

const waitsMs = 60_000

export type Turns = {
  /** `BUSY` where that name has its turn, or no turn of that kind comes in time. */
  take<T>(kind: Kind, name: string, run: () => Promise<T>): Promise<T | Refused>
}

type Queue = { running: number; readonly waiting: Set<(isFree: boolean) => void> }

export const openTurns = (timers: Pick<Timers, 'after'>): Turns => {
  const names = new Set<string>()
  const queues: Readonly<Record<Kind, Queue>> = {
    reload: { running: 0, waiting: new Set() },
    service: { running: 0, waiting: new Set() },
    check: { running: 0, waiting: new Set() },
  }

  /** False: none came free in time. */
  const turnIn = async (queue: Queue, atOnce: number): Promise<boolean> => {
    if (queue.running < atOnce) {
      queue.running += 1
      return true
    }
    return new Promise((resolve) => {
      const go = (isFree: boolean): void => {
        queue.waiting.delete(go)
        cancel()
        resolve(isFree)
      }
      const cancel = timers.after(waitsMs, () => go(false), 'background')
      queue.waiting.add(go)
    })
  }
  /** Hands the turn to the one that has waited longest, if one does. */
  const free = (queue: Queue): void => {
    const [next] = queue.waiting
    if (next === undefined) queue.running -= 1
    else next(true)
  }

  return {
    take: async (kind, name, run) => {
      const what = `${kind} ${name}`
      const { atOnce, waiting } = kinds[kind]
      const queue = queues[kind]
      if (names.has(what)) return refused('BUSY', `${what} is being run already`)
      const isFull = queue.waiting.size >= waiting
      names.add(what)
      try {
        if (isFull || !(await turnIn(queue, atOnce))) return refused('BUSY', `${atOnce} ${kind}s are being run already`)
        try {
          return await run()
        } finally {
          free(queue)
        }
      } finally {
        names.delete(what)
      }
    },
  }
}
