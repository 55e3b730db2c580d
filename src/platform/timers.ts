// Timers never carry deadlines of days: Node fires a timeout beyond 24.8 days at once. Long deadlines are swept by the
// wall clock instead, and `after` refuses what it could not keep.

export type Cancel = () => void

export type Timers = {
  /** Runs once, after at most 24 days; does not keep the process alive when `background`. */
  after(ms: number, run: () => void, background?: 'background'): Cancel
  /** Runs repeatedly until cancelled; does not keep the process alive. */
  every(ms: number, run: () => void): Cancel
  /** Runs in a later turn of the event loop, after pending IO. */
  soon(run: () => void): void
}

const longestMs = 24 * 24 * 3600 * 1000

export const systemTimers: Timers = {
  after(ms, run, background) {
    if (!(ms <= longestMs)) throw new RangeError(`a timer of ${ms} ms cannot be kept; sweep by the clock instead`)
    const timer = setTimeout(run, Math.max(0, ms))
    if (background) timer.unref()
    return () => clearTimeout(timer)
  },
  every(ms, run) {
    const timer = setInterval(run, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  soon: (run) => void setImmediate(run),
}

/** `background`: a process that stops does not wait for it. */
export const sleep = (timers: Pick<Timers, 'after'>, ms: number, background?: 'background'): Promise<void> =>
  new Promise((resolve) => void timers.after(ms, resolve, background))

/** Lets other work run: resolves in a later turn of the event loop, after pending IO. */
export const turn = (timers: Pick<Timers, 'soon'>): Promise<void> => new Promise((resolve) => timers.soon(resolve))

/** A wait that doubles with every failure in a row, up to the longest. Without a failure it is `firstMs`. */
export const doublingWaitMs = (failures: number, firstMs: number, longestMs: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(failures, 30))
