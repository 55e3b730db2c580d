// One after the other: a task waits for the tasks that were given before it.

export type Turns = <T>(run: () => Promise<T>) => Promise<T>

export type TurnsByKey = <T>(key: string, run: () => Promise<T>) => Promise<T>

/** Tasks of different keys do not wait for each other. */
export const takeTurnsByKey = (): TurnsByKey => {
  const last = new Map<string, Promise<unknown>>()
  return (key, run) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(run)
    // The next in line starts whether or not this one failed; the failure itself goes to its caller.
    const over = mine
      .catch(() => undefined)
      .then(() => {
        if (last.get(key) === over) last.delete(key)
      })
    last.set(key, over)
    return mine
  }
}

export const takeTurns = (): Turns => {
  const inTurn = takeTurnsByKey()
  return (run) => inTurn('', run)
}
