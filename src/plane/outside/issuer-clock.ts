// How far the clock of an outside issuer is from ours, as its answers show: each has a date.

import type { Clock } from '#platform/clock.ts'
import type { IssuerClient } from './issuer-client.ts'

export type ClockMeasured = {
  readonly client: IssuerClient
  /** At the last answer; below 0 it was behind. Null: none has said. */
  aheadMs(): number | null
}

export const measuringClock = (clock: Pick<Clock, 'nowMs'>, client: IssuerClient): ClockMeasured => {
  let aheadMs: number | null = null
  return {
    aheadMs: () => aheadMs,
    client: {
      async ask(request, signal) {
        const answer = await client.ask(request, signal)
        if (answer.dateMs !== null) aheadMs = aheadBy(answer.dateMs, clock.nowMs())
        return answer
      },
      close: () => client.close(),
    },
  }
}

/** The date has whole seconds, cut off: what is within that second is no difference. */
const aheadBy = (dateMs: number, nowMs: number): number =>
  dateMs > nowMs ? dateMs - nowMs : Math.min(0, dateMs + 1000 - nowMs)
