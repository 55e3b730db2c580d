// When a certificate is renewed (ruling 8), and how often it is tried again. Pure: the loop that asks is identity/keep-renewed.ts.

import { sha256 } from '#platform/bytes.ts'

export type CertificateTimes = {
  /** When it was issued: the backdating of notBefore is no part of its life. */
  readonly issuedAtMs: number
  readonly notAfterMs: number
}

export type RenewalWindow = { readonly renewFrom: number; readonly renewTo: number }

/** Between the two fractions of the lifetime; `jitterUnit` in [0, 1) makes it earlier than the later one, never later. */
export const renewAtMs = (times: CertificateTimes, window: RenewalWindow, jitterUnit: number): number => {
  const lifetimeMs = times.notAfterMs - times.issuedAtMs
  const fraction = window.renewTo - (window.renewTo - window.renewFrom) * jitterUnit
  return Math.floor(times.issuedAtMs + lifetimeMs * fraction)
}

/** The same for a certificate at every start: restarts do not shift its renewal. */
export const jitterOf = (serial: string): number => sha256(serial).readUInt32BE(0) / 2 ** 32

export type LastTry = { readonly atMs: number; readonly delayMs: number }

/** By the wall clock, which may jump: a clock set back behind the last failure does not postpone the next try. */
export const renewalIsDue = (nowMs: number, dueAtMs: number, lastTry: LastTry | null): boolean => {
  if (nowMs < dueAtMs) return false
  if (lastTry === null) return true
  return nowMs < lastTry.atMs || nowMs >= lastTry.atMs + lastTry.delayMs
}

const minute = 60_000
const ladderMs = [5 * minute, 10 * minute, 20 * minute, 40 * minute, 60 * minute] as const
const shortestMs = 100
const triesInWhatRemains = 8

/**
 * The wait after the `failures`-th failure in a row (from 1): the ladder, never more than an eighth of what is left of
 * the certificate. So whenever an outage ends, seven eighths of what was left at the last try before that are left for the
 * next. Jitter only shortens it.
 */
export const renewRetryMs = (failures: number, remainingMs: number, jitterUnit: number): number => {
  const step = ladderMs[Math.min(Math.max(failures, 1), ladderMs.length) - 1] ?? 60 * minute
  const capped = remainingMs > 0 ? Math.min(step, remainingMs / triesInWhatRemains) : minute
  return Math.max(shortestMs, Math.round(capped * (1 - jitterUnit / 4)))
}

/** The retry time of the plane, unless it would use up half of the remaining lifetime. */
export const slotWaitMs = (retryAfterMs: number | null, remainingMs: number): number =>
  Math.min(retryAfterMs ?? 0, Math.max(0, remainingMs / 2))

/** How often to look whether it is due: a second is a long time for a certificate of a minute. */
export const lookEveryMs = ({ issuedAtMs, notAfterMs }: CertificateTimes): number =>
  Math.min(1_000, Math.max(shortestMs, (notAfterMs - issuedAtMs) / 120))

const longestSpreadMs = 5_000

/** The plane is back: at once, but ten thousand of us not in the same moment. */
export const spreadMs = (remainingMs: number, jitterUnit: number): number =>
  Math.round(jitterUnit * Math.min(longestSpreadMs, Math.max(0, remainingMs) / 100))
