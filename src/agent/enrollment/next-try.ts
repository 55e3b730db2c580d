// What an enrollment that failed means for the next try.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'

type Prospect =
  /** Soon: nothing is wrong with us. */
  | 'again'
  /** The identity is taken by a node that is still active; it becomes free when that one's grace ends. */
  | 'when-free'
  /** An operator has to do something first; asked again now and then. */
  | 'after-operator'
  /** With a new key: the one in the request is of no use. */
  | 'new-key'
  | 'never'

/** Codes this agent does not know come from a newer plane: it asks again, slowly. */
const afterEnrollRefusal = (code: string): Prospect => {
  switch (code) {
    case 'BUSY':
    case 'RATE_LIMITED':
    case 'UNAVAILABLE':
    case 'DISK_TROUBLE':
    case 'REPLICA_BEHIND':
    case 'STORE_IN_DOUBT':
    case 'ISSUANCE_HALTED':
    case 'CHALLENGE_INVALID':
      return 'again'
    case 'ALREADY_ACTIVE':
      return 'when-free'
    case 'KEY_BLOCKED':
    case 'KEY_IN_USE':
      return 'new-key'
    case 'NODE_REVOKED':
    case 'TOKEN_MALFORMED':
    case 'TOKEN_INVALID':
    case 'TOKEN_EXPIRED':
    case 'TOKEN_USED':
    case 'JOIN_METHOD_NOT_ALLOWED':
    case 'CSR_INVALID':
    case 'REQUEST_INVALID':
    case 'TOO_LARGE':
    case 'NOT_FOUND':
    case 'METHOD_NOT_ALLOWED':
    case 'PROFILE_INVALID':
    case 'ANSWER_UNUSABLE':
    // It has used up the token; the next one comes with another key.
    case 'WG_KEY_IN_USE':
    case 'WG_KEY_REQUIRED':
      return 'never'
    default:
      return /^HTTP_5\d\d$/.test(code) ? 'again' : 'after-operator'
  }
}

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
  const { code, retryAfterMs } = failure
  switch (afterEnrollRefusal(code)) {
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
        outcome: { kind: code === 'NODE_REVOKED' ? 'revoked' : 'refused', trouble: failure.trouble },
      }
  }
}
