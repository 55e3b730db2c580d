// Single questions of one kind, answered together: what is asked in one turn of the event loop goes to the database at
// once, and what is asked while enough is under way waits for the next, so that the busier a plane is the fewer
// statements it needs for each.

import type { Timers } from '#platform/timers.ts'

/** Null: there is none. What it resolves to was read after it was asked for. */
export type Gathered<V> = (key: string) => Promise<V | null>

type Asker<V> = { readonly resolve: (found: V | null) => void; readonly reject: (error: unknown) => void }

const mostKeys = 1000
/** More than one, so that a connection that hangs does not make all callers wait for its end. */
const mostUnderWay = 2

/** `ask`: those that are there, by key. */
export const gatherReads = <V>(
  timers: Timers,
  ask: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
): Gathered<V> => {
  const waiting = new Map<string, Asker<V>[]>()
  let underWay = 0
  let due = false

  const answer = async (asked: readonly (readonly [string, readonly Asker<V>[]])[]): Promise<void> => {
    try {
      const found = await ask(asked.map(([key]) => key))
      for (const [key, askers] of asked) for (const { resolve } of askers) resolve(found.get(key) ?? null)
    } catch (error) {
      for (const [, askers] of asked) for (const { reject } of askers) reject(error)
    }
  }

  const askNext = (): void => {
    due = false
    while (waiting.size > 0 && underWay < mostUnderWay) {
      const asked = [...waiting].slice(0, mostKeys)
      for (const [key] of asked) waiting.delete(key)
      underWay++
      void answer(asked).then(() => {
        underWay--
        askNext()
      })
    }
  }

  return (key) =>
    new Promise((resolve, reject) => {
      const askers = waiting.get(key)
      if (askers === undefined) waiting.set(key, [{ resolve, reject }])
      else askers.push({ resolve, reject })
      if (due || underWay >= mostUnderWay) return
      due = true
      timers.soon(askNext)
    })
}
