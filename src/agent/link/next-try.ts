// What an enrollment or a recovery that failed means for the next try. All functions here are pure.

import { fullJitterMs, notBeforeMs } from '#agent/core/backoff.ts'
import { doublingWaitMs } from '#platform/timers.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { isKeyType } from '#domain/core/profile.ts'
import { afterRefusal } from './after-refusal.ts'
import type { PlaneFailure } from './plane-failure.ts'

/** What the node asks for: its first identity, or a new one in place of one that no longer works. */
export type Asked = 'enroll' | 'recover'

export type NextTry =
  | {
      readonly kind: 'wait'
      readonly waitMs: number
      /** The plane said no, or was not recognised: a node that is invited enrolls instead. */
      readonly orEnroll: boolean
      readonly forget: 'nothing' | 'key' | 'bundle'
      readonly intent: string
    }
  /** This plane does not have that call. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'give-up'; readonly outcome: AgentOutcome }

type Rhythm = {
  readonly soonMs: number
  readonly soonCapMs: number
  /** Longer than these not even a retry time named by the plane makes a wait. */
  readonly longestSoonMs: number
  readonly longestOperatorMs: number
  /** While an operator has to do something first. */
  readonly operatorMs: (attempt: number, unit: number) => number
}

const operatorMs = 30_000
export const operatorCapMs = 300_000
export const recoverySoonCapMs = 60_000

const rhythms: Readonly<Record<Asked, Rhythm>> = {
  enroll: {
    soonMs: 500,
    soonCapMs: 30_000,
    longestSoonMs: Infinity,
    longestOperatorMs: Infinity,
    operatorMs: (attempt, unit) => operatorMs + fullJitterMs(attempt, operatorMs, operatorCapMs, unit),
  },
  // An approval may come at any time, and every minute without an identity counts.
  recover: {
    soonMs: 1_000,
    soonCapMs: recoverySoonCapMs,
    longestSoonMs: recoverySoonCapMs,
    longestOperatorMs: operatorCapMs,
    operatorMs: (attempt, unit) => Math.round(doublingWaitMs(attempt, operatorMs, operatorCapMs) * (1 - unit / 4)),
  },
}

const freeMs = 500
const freeCapMs = 15_000

/** `attempt` counts from 0; `unit` in [0, 1). */
export const nextTry = (
  asked: Asked,
  failure: Exclude<PlaneFailure, { kind: 'stopped' }>,
  attempt: number,
  unit: number,
): NextTry => {
  const rhythm = rhythms[asked]
  const soon = fullJitterMs(attempt, rhythm.soonMs, rhythm.soonCapMs, unit)
  switch (failure.kind) {
    case 'unreachable':
      return wait(soon, '')
    case 'untrusted':
      // Nothing was sent. A node that was never enrolled has only the join string to go by, which may name the wrong root.
      if (asked === 'enroll') return { kind: 'give-up', outcome: { kind: 'untrusted', trouble: failure.trouble } }
      // It may be a network that answers for others, or the plane gets its certificate back.
      return wait(Math.round((recoverySoonCapMs * (1 + unit)) / 2), 'Nothing was sent; asking again.', {
        orEnroll: true,
      })
    case 'refused':
      break
  }
  const { retry, retryAfterMs, keyTypes } = failure
  if (keyTypes.some(isKeyType)) return wait(1_000 + soon, 'Making a key of a type that is allowed.', { forget: 'key' })
  const notBefore = (ms: number): number => notBeforeMs(ms, retryAfterMs, unit)
  switch (afterRefusal[retry][asked]) {
    case 'again':
      return wait(Math.min(rhythm.longestSoonMs, notBefore(soon)), '')
    case 'when-free': {
      const waitMs = notBefore(1_000 + fullJitterMs(attempt, freeMs, freeCapMs, unit))
      return wait(waitMs, 'Asking again until the grace of that node ends.')
    }
    case 'after-operator': {
      const waitMs = Math.min(rhythm.longestOperatorMs, notBefore(rhythm.operatorMs(attempt, unit)))
      return wait(waitMs, 'Asking again now and then.', { orEnroll: true })
    }
    case 'new-key':
      return wait(1_000 + soon, 'Making a new key.', { forget: 'key' })
    case 'without-bundle':
      return wait(1_000, 'The repair bundle is of no use any more.', { forget: 'bundle' })
    case 'elsewhere':
      return { kind: 'elsewhere' }
    case 'never':
      return {
        kind: 'give-up',
        outcome: { kind: retry === 'revoked' ? 'revoked' : 'refused', trouble: failure.trouble },
      }
  }
}

type Waiting = Extract<NextTry, { kind: 'wait' }>

const wait = (waitMs: number, intent: string, more: Partial<Waiting> = {}): Waiting => ({
  ...({ kind: 'wait', waitMs, orEnroll: false, forget: 'nothing', intent } as const),
  ...more,
})

const longestSpreadMs = 5_000

/** Before the first recovery: what ended this identity may have ended thousands in the same moment. */
export const firstRecoveryMs = (lifetimeMs: number, unit: number): number =>
  Math.round(unit * Math.min(longestSpreadMs, lifetimeMs / 10))
