// What a recovery that failed means for the next try. Pure.

import { afterRefusal } from '#agent/link/after-refusal.ts'
import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'

export type NextRecovery =
  | {
      readonly kind: 'wait'
      readonly waitMs: number
      /** The plane said no, or was not itself: with an invitation in hand, that is tried instead. */
      readonly orEnrol: boolean
      readonly forget: 'nothing' | 'key' | 'bundle'
      readonly intent: string
    }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'give-up'; readonly outcome: AgentOutcome }

const soonMs = 1_000
export const soonCapMs = 60_000
const operatorMs = 30_000
export const operatorCapMs = 300_000

const longestSpreadMs = 5_000

/** Before the first try: what ended this identity may have ended thousands in the same moment. */
export const firstRecoveryMs = (lifetimeMs: number, unit: number): number =>
  Math.round(unit * Math.min(longestSpreadMs, lifetimeMs / 10))

/** `attempt` counts from 0; `unit` in [0, 1). */
export const nextRecovery = (
  failure: Exclude<PlaneFailure, { kind: 'stopped' }>,
  attempt: number,
  unit: number,
): NextRecovery => {
  const wait = (waitMs: number, intent: string, more: Partial<Extract<NextRecovery, { kind: 'wait' }>> = {}) =>
    ({ kind: 'wait', waitMs, orEnrol: false, forget: 'nothing', intent, ...more }) as const
  const soon = fullJitterMs(attempt, soonMs, soonCapMs, unit)
  switch (failure.kind) {
    case 'unreachable':
      return wait(soon, '')
    case 'untrusted':
      // Fails closed. It may be a network that answers for others, or the plane gets its certificate back.
      return wait(Math.round((soonCapMs * (1 + unit)) / 2), 'Nothing was sent; asking again.', { orEnrol: true })
    case 'refused':
      break
  }
  const { retry, retryAfterMs } = failure
  switch (afterRefusal[retry].recover) {
    case 'again':
      return wait(Math.min(soonCapMs, notBeforeMs(soon, retryAfterMs, unit)), '')
    case 'new-key':
      return wait(1_000 + soon, 'Making a new key.', { forget: 'key' })
    case 'without-bundle':
      return wait(1_000, 'The repair bundle is of no use any more.', { forget: 'bundle' })
    case 'after-operator': {
      const step = Math.min(operatorCapMs, operatorMs * 2 ** Math.min(attempt, 10))
      // An approval may come at any time, so not even a slot named by the plane makes it longer.
      const waitMs = Math.min(operatorCapMs, notBeforeMs(Math.round(step * (1 - unit / 4)), retryAfterMs, unit))
      return wait(waitMs, 'Asking again now and then.', { orEnrol: true })
    }
    case 'elsewhere':
      return { kind: 'elsewhere' }
    case 'never':
      return { kind: 'give-up', outcome: { kind: 'revoked', trouble: failure.trouble } }
  }
}
