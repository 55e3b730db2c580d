// A key that is elsewhere signs for many who wait: so many signatures are under way at once, and so many wait in turn. What else uses the same
// token or Vault gets its turn between them.

export type SigningSlots = {
  /** Null: too many wait, and nothing was run. */
  run<T>(sign: () => Promise<T>): Promise<T | null>
}

export const openSigningSlots = ({
  most,
  mostWaiting,
}: {
  readonly most: number
  readonly mostWaiting: number
}): SigningSlots => {
  const waiting: (() => void)[] = []
  let running = 0
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      if (running < most) {
        running++
        resolve()
      } else waiting.push(resolve)
    })
  const leave = (): void => {
    const next = waiting.shift()
    // The slot goes to the next one.
    if (next === undefined) running--
    else next()
  }
  return {
    async run(sign) {
      if (running >= most && waiting.length >= mostWaiting) return null
      await turn()
      try {
        return await sign()
      } finally {
        leave()
      }
    },
  }
}
