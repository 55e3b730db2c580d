// What an enrollment that failed means for the next try.

import { afterRefusal } from '#agent/link/after-refusal.ts'
import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'

export type NextTry =
  | { readonly kind: 'wait'; readonly waitMs: number; readonly newKey: boolean; readonly intent: string }
  | { readonly kind: 'give-up'; readonly outcome: AgentOutcome }

const soonMs = 500
const soonCapMs = 30_000
const freeCapMs = 15_000
const operatorMs = 30_000
const operatorCapMs = 300_000

export const nextTry = (
  failure: Exclude<PlaneFailure, { kind: 'stopped' }>,
  attempt: number,
  unit: number,
): NextTry => {
  const wait = (waitMs: number, intent: string, newKey = false): NextTry => ({ kind: 'wait', waitMs, newKey, intent })
  const soon = fullJitterMs(attempt, soonMs, soonCapMs, unit)
  switch (failure.kind) {
    case 'unreachable':
      return wait(soon, '')
    case 'untrusted':
      return { kind: 'give-up', outcome: { kind: 'untrusted', trouble: failure.trouble } }
    case 'refused':
      break
  }
  const { retry, retryAfterMs } = failure
  switch (afterRefusal[retry].enroll) {
    case 'again':
      return wait(notBeforeMs(soon, retryAfterMs, unit), '')
    case 'when-free': {
      const waitMs = notBeforeMs(1_000 + fullJitterMs(attempt, soonMs, freeCapMs, unit), retryAfterMs, unit)
      return wait(waitMs, 'Asking again until the grace of that node ends.')
    }
    case 'after-operator': {
      const waitMs = notBeforeMs(
        operatorMs + fullJitterMs(attempt, operatorMs, operatorCapMs, unit),
        retryAfterMs,
        unit,
      )
      return wait(waitMs, 'Asking again now and then.')
    }
    case 'new-key':
      return wait(1_000 + soon, 'Making a new key.', true)
    case 'never':
      return {
        kind: 'give-up',
        outcome: { kind: retry === 'revoked' ? 'revoked' : 'refused', trouble: failure.trouble },
      }
  }
}
