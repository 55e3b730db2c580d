// How far this machine's clock is from the database's, as a question and its answer show it.

import { durationWords } from '#domain/core/in-words.ts'
import type { Instant } from './standing-at.ts'

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
