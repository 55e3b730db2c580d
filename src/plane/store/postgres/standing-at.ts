// Whether this replica may act, from its own facts: when it last renewed its lease, up to when it has read everything, and how far
// its clock is from the database's.

import { durationWords } from '#domain/core/in-words.ts'
import type { Clock } from '#platform/clock.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'

/** One moment by both clocks. */
export type Instant = { readonly monotonicMs: number; readonly wallMs: number }

export const instantOf = (clock: Clock): Instant => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() })

export type StandingFacts = {
  readonly now: Instant
  /** When the newest renewal that was confirmed had been sent; null: there is no lease to renew. */
  readonly renewed: Instant | null
  /** Everything committed before this moment has been published here; null: no such moment is known. */
  readonly caughtUpAt: Instant | null
  /** What has kept it from reading more; null: nothing but time, as far as is known. */
  readonly whyBehind: string | null
  /** As the newest renewal showed it; null: it was not compared. */
  readonly clock?: ClockOffset | null
  /** How far it may be from the database's. */
  readonly clockToleranceMs?: number
  readonly leaseMs: number
  readonly mostBehindMs: number
}

export const standingAt = (facts: StandingFacts): Standing => {
  const {
    now,
    renewed,
    caughtUpAt,
    whyBehind,
    clock = null,
    clockToleranceMs = Infinity,
    leaseMs,
    mostBehindMs,
  } = facts
  if (renewed === null) return { kind: 'expired', why: 'this replica has no lease' }
  const unrenewedMs = elapsedMs(renewed, now)
  if (unrenewedMs >= leaseMs) return { kind: 'expired', why: `the lease was last renewed ${seconds(unrenewedMs)} ago` }
  const skew = clock === null ? null : clockTrouble(clock, now, clockToleranceMs)
  if (skew !== null) return { kind: 'skewed', why: skew }
  if (caughtUpAt === null) return { kind: 'behind', why: 'what the other replicas have committed is still being read' }
  // Waiting for `mostBehindMs` is for silence. What is known to be missing is known now.
  if (whyBehind !== null) return { kind: 'behind', why: whyBehind }
  const behindMs = elapsedMs(caughtUpAt, now)
  if (behindMs < mostBehindMs) return { kind: 'serving' }
  return { kind: 'behind', why: `what the other replicas have committed was last heard of ${seconds(behindMs)} ago` }
}

/**
 * The clock that says longer: the monotonic one stops while a machine sleeps, the wall clock may be set back. Set forward, it costs
 * a lease that is renewed within a second.
 */
export const elapsedMs = (since: Instant, now: Instant): number =>
  Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs)

const seconds = (ms: number): string => `${Math.floor(ms / 1000)} s`

/** How far this machine's clock is from the database's, as a question and its answer show it. */
export type ClockOffset = {
  /** Above 0: this machine's clock is ahead. */
  readonly offsetMs: number
  /** The database read its clock at some moment while the answer was on its way: it may be wrong by so much. */
  readonly uncertainMs: number
  /** When the question was sent. */
  readonly at: Instant
}

/** `sent` and `received`: by this machine, before and after. `databaseMs`: what the database said in between. */
export const clockOffset = (sent: Instant, received: Instant, databaseMs: number): ClockOffset => {
  // By the monotonic clock: the wall clock may have been set in between.
  const uncertainMs = Math.max(0, received.monotonicMs - sent.monotonicMs) / 2
  return { offsetMs: sent.wallMs + uncertainMs - databaseMs, uncertainMs, at: sent }
}

/** As it is now: a wall clock that was set since has moved away from the monotonic one. */
export const offsetNow = ({ offsetMs, at }: ClockOffset, now: Instant): number =>
  offsetMs + (now.wallMs - at.wallMs) - (now.monotonicMs - at.monotonicMs)

/** Null: it is within the tolerance, or may be. */
export const clockTrouble = (measured: ClockOffset, now: Instant, toleranceMs: number): string | null => {
  const offsetMs = offsetNow(measured, now)
  return Math.abs(offsetMs) - measured.uncertainMs > toleranceMs ? clockTroubleWords(offsetMs, toleranceMs) : null
}

const clockTroubleWords = (offsetMs: number, toleranceMs: number): string =>
  `the clock of this machine is ${durationWords(Math.abs(offsetMs))} ${offsetMs > 0 ? 'ahead of' : 'behind'} the database's, ` +
  `and ${durationWords(toleranceMs)} are tolerated`
