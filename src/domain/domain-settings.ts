// The values that hold for the whole domain.

import { unbroken, type Continuity } from './continuity.ts'

export type DomainSettings = {
  /** The trust domain: the authority of every SPIFFE name. Set at first start, never changed. */
  readonly name: string
  readonly defaultProfile: string
  /** How long an active node may be without a channel before it lapses. */
  readonly livenessGraceMs: number
  /** Failing enrollments a minute, overall and for one source, before they are refused unheard. */
  readonly strangersPerMinute: number
  readonly strangersPerMinutePerSource: number
  readonly clockToleranceMs: number
  readonly stuckEnrollmentMs: number
  /** How long a replaced certificate still serves while its connections drain. */
  readonly drainMs: number
  /** Whether the store is the one its nodes have seen. No setting: it follows from what they show, and from operators who look. */
  readonly continuity: Continuity
}

const minute = 60_000

export const defaultDomainSettings = (name: string): DomainSettings => ({
  name,
  defaultProfile: 'gpu-cloud',
  livenessGraceMs: 5 * minute,
  strangersPerMinute: 100,
  strangersPerMinutePerSource: 100,
  clockToleranceMs: 5 * minute,
  stuckEnrollmentMs: 10 * minute,
  drainMs: minute,
  continuity: unbroken,
})
