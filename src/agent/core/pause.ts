// How the agent waits. A wait ends early when the agent is stopped, and some also when an operator nudges it to try
// everything now (`muster agent renew --now`).

import type { Timers } from '#platform/timers.ts'
import type { AgentParts, Nudge } from './agent-parts.ts'

/** Waits, or less when the agent is stopped meanwhile. */
export const pause = (timers: Timers, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = (): void => {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const cancel = timers.after(ms, done)
    signal.addEventListener('abort', done)
  })

/** Waits; ends early on a nudge (SIGUSR2) or when the agent is stopped. */
export const nudgedPause = async (
  { timers, nudge, signal }: Pick<AgentParts, 'timers' | 'nudge' | 'signal'>,
  ms: number,
): Promise<void> => {
  const over = new AbortController()
  const either = AbortSignal.any([signal, over.signal])
  await Promise.race([pause(timers, ms, either), nudge.wait(either)])
  over.abort()
}

export type Nudging = { readonly nudge: Nudge; fire(): void }

export const openNudging = (): Nudging => {
  const waiting = new Set<() => void>()
  let count = 0
  return {
    nudge: {
      count: () => count,
      wait: (signal) =>
        new Promise((resolve) => {
          const wake = (): void => {
            waiting.delete(wake)
            signal.removeEventListener('abort', wake)
            resolve()
          }
          if (signal.aborted) return resolve()
          waiting.add(wake)
          signal.addEventListener('abort', wake)
        }),
    },
    fire: () => {
      count += 1
      for (const wake of [...waiting]) wake()
    },
  }
}
