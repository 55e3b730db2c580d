// Whether this replica may act, from what it knows itself: when it last renewed its lease, and up to when it has heard of
// everything.

import type { Clock } from '#platform/clock.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import { clockTrouble, type ClockOffset } from './clock-offset.ts'

/** One moment by both clocks. */
export type Instant = { readonly monotonicMs: number; readonly wallMs: number }

export const instantOf = (clock: Clock): Instant => ({ monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() })

export type StandingFacts = {
  readonly now: Instant
  /** When the newest renewal that was confirmed had been sent; null: there is no lease to renew. */
  readonly renewed: Instant | null
  /** Everything committed before this moment has been told here; null: nothing is known to have been. */
  readonly heard: Instant | null
  /** What has kept it from hearing more; null: nothing but time, as far as is known. */
  readonly unheard: string | null
  /** As the newest renewal showed it; null: it was not compared. */
  readonly clock?: ClockOffset | null
  /** How far it may be from the database's. */
  readonly clockToleranceMs?: number
  readonly leaseMs: number
  readonly mostBehindMs: number
}

export const standingAt = (facts: StandingFacts): Standing => {
  const { now, renewed, heard, unheard, clock = null, clockToleranceMs = Infinity, leaseMs, mostBehindMs } = facts
  if (renewed === null) return { kind: 'expired', why: 'this replica has no lease' }
  const unrenewedMs = elapsedMs(renewed, now)
  if (unrenewedMs >= leaseMs) return { kind: 'expired', why: `the lease was last renewed ${seconds(unrenewedMs)} ago` }
  const skew = clock === null ? null : clockTrouble(clock, now, clockToleranceMs)
  if (skew !== null) return { kind: 'skewed', why: skew }
  if (heard === null) return { kind: 'behind', why: 'what the other replicas have committed is still being read' }
  // Waiting for `mostBehindMs` is for silence. What is known to be missing is known now.
  if (unheard !== null) return { kind: 'behind', why: unheard }
  const behindMs = elapsedMs(heard, now)
  if (behindMs < mostBehindMs) return { kind: 'serving' }
  return { kind: 'behind', why: `what the other replicas have committed was last heard of ${seconds(behindMs)} ago` }
}

/**
 * Whichever clock says longer: the monotonic one stands still while a machine sleeps, the other may be set back. Set
 * forward, it costs a lease that is renewed within a second.
 */
export const elapsedMs = (since: Instant, now: Instant): number =>
  Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs)

const seconds = (ms: number): string => `${Math.floor(ms / 1000)} s`
