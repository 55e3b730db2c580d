// Waiting for something to become true, with an end. Tests ask again and again instead of sleeping a guessed time.

export type Patience = { readonly withinMs?: number; readonly everyMs?: number }

/** The first value of `probe` that is not null, undefined or false. Fails with what was awaited and the last trouble. */
export const eventually = async <T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = 10_000, everyMs = 20 }: Patience = {},
): Promise<Exclude<T, null | undefined | false | void>> => {
  const deadlineMs = performance.now() + withinMs
  let trouble: unknown
  for (;;) {
    try {
      const value = await within(what, deadlineMs - performance.now(), Promise.resolve(probe()))
      if (value !== null && value !== undefined && value !== false) {
        return value as Exclude<T, null | undefined | false | void>
      }
    } catch (error) {
      trouble = error
    }
    if (performance.now() >= deadlineMs) throw new Error(`${what}: not within ${withinMs} ms`, { cause: trouble })
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** A promise that is given so long and no longer. */
export const within = async <T>(what: string, ms: number, promise: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${Math.round(ms)} ms`)), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
