// One after the other: whoever changes the authorities of this process waits for whoever is doing so.

export type Turns = <T>(run: () => Promise<T>) => Promise<T>

export const takeTurns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve()
  return (run) => {
    const mine = last.then(run)
    // The next in line starts whether or not this one failed; the failure itself goes to whoever asked.
    last = mine.catch(() => undefined)
    return mine
  }
}
