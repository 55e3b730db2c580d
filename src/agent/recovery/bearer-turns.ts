// A renewal replaces the bearer token that a rehearsal brings. A rehearsal that the plane reads after the renewal would be refused, and the
// journal would say so for good. So the two take turns.

import type { Timers } from '#platform/timers.ts'

export type BearerTurns = {
  /** Null: a renewal is under way, and nothing was sent. */
  rehearse<T>(send: () => Promise<T>): Promise<T> | null
  /** Sends once the rehearsal that is under way has its answer, and after 5 s in any case: a renewal must not depend on one. */
  renew<T>(send: () => Promise<T>): Promise<T>
}

const longestWaitMs = 5_000

export const openBearerTurns = (timers: Pick<Timers, 'after'>): BearerTurns => {
  let renewals = 0
  let rehearsal: Promise<unknown> | null = null

  const rehearsalIsOver = async (underWay: Promise<unknown>): Promise<void> => {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = timers.after(longestWaitMs, resolve, 'background')
    await Promise.race([underWay.catch(() => undefined), late]).finally(cancel)
  }
  return {
    rehearse: (send) => {
      if (renewals > 0) return null
      const answer = send()
      rehearsal = answer
      return answer.finally(() => {
        if (rehearsal === answer) rehearsal = null
      })
    },
    renew: async (send) => {
      renewals += 1
      try {
        if (rehearsal !== null) await rehearsalIsOver(rehearsal)
        return await send()
      } finally {
        renewals -= 1
      }
    },
  }
}
