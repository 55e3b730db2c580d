// Waiting for something to become true, with an end. Tests ask again and again instead of sleeping a guessed time. The end is
// counted in fair time (fair-time.ts): it is there for what never becomes true, and a busy machine must not bring it nearer.

import { fairNowMs } from './fair-time.ts'

/** `everyMs` left out: the longer it takes, the seldomer it asks, since asking takes time from what is waited for. */
export type Patience = { readonly withinMs?: number; readonly everyMs?: number }

const shortestPauseMs = 20
const longestPauseMs = 250
/** For the last look, which says what was still missing. */
const lastLookMs = 1_000

/** A tenth of what has been waited: what comes true is noticed at most so much later. */
const pauseAfter = (waitedMs: number): number => Math.min(longestPauseMs, Math.max(shortestPauseMs, waitedMs / 10))

/** The first value of `probe` that is not null, undefined or false. Fails with what was awaited and the last trouble. */
export const eventually = async <T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = 10_000, everyMs }: Patience = {},
): Promise<Exclude<T, null | undefined | false | void>> => {
  const startedMs = performance.now()
  const deadlineMs = fairNowMs() + withinMs
  let trouble: unknown
  for (;;) {
    try {
      const value = await within(what, Math.max(lastLookMs, deadlineMs - fairNowMs()), Promise.resolve(probe()))
      if (value !== null && value !== undefined && value !== false) {
        return value as Exclude<T, null | undefined | false | void>
      }
    } catch (error) {
      trouble = error
    }
    if (fairNowMs() >= deadlineMs) throw new Error(`${what}: not within ${withinMs} ms`, { cause: trouble })
    const pauseMs = everyMs ?? pauseAfter(performance.now() - startedMs)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** A promise that is given so long and no longer. */
export const within = async <T>(what: string, ms: number, promise: Promise<T>): Promise<T> => {
  const deadlineMs = fairNowMs() + ms
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const look = (): void => {
      const leftMs = deadlineMs - fairNowMs()
      if (leftMs > 0) timer = setTimeout(look, Math.ceil(leftMs))
      else reject(new Error(`${what}: not within ${Math.round(ms)} ms`))
    }
    timer = setTimeout(look, Math.max(0, ms))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
