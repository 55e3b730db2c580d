// Somebody wants the agent to try everything now: its waits end, and its certificate is renewed.

import type { Nudge } from './agent-deps.ts'

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
