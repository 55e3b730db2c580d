// What the agent counts about itself: the figures behind its metrics and its reports. Memory only.

import type { FailureClass } from '#domain/recovery/failure-class.ts'
import type { RehearsalStep } from '#domain/core/node.ts'
import type { Clock } from '#platform/clock.ts'
import type { Trouble } from './trouble.ts'

export type FailureSeen = { readonly atMs: number; readonly trouble: Trouble }
export type ByClass = Partial<Record<FailureClass, number>>

export type RehearsalSeen = {
  readonly atMs: number
  readonly outcome: 'passed' | 'failed'
  readonly step: RehearsalStep | null
  readonly why: string | null
}

export type VitalSigns = {
  readonly source: 'plane' | 'static' | 'spire'
  /** How far this machine's clock is behind the plane's; 0 within the tolerance. */
  readonly clockSkewMs: number
  /** Wall clock, judged. */
  readonly lastExchangeMs: number | null
  readonly renewal: {
    readonly attempts: number
    readonly failures: ByClass
    readonly lastAttemptMs: number | null
    readonly lastFailure: FailureSeen | null
  }
  readonly recovery: {
    readonly attempts: ByClass
    readonly successes: number
    readonly failures: ByClass
    readonly lastAttemptMs: number | null
    readonly lastFailure: FailureSeen | null
  }
  readonly rehearsal: RehearsalSeen | null
  readonly driftTotal: number
  readonly diagnosticWriteFailures: Readonly<Record<string, number>>
  readonly dropped: readonly { readonly source: string; readonly reason: string; readonly count: number }[]
}

export type Vitals = {
  /** An authenticated exchange with the plane has just succeeded. */
  exchanged(): void
  source(source: VitalSigns['source']): void
  clockSkew(ms: number): void
  renewalTried(): void
  renewalFailed(trouble: Trouble): void
  recoveryTried(because: FailureClass): void
  recoveryFailed(trouble: Trouble): void
  recovered(): void
  rehearsed(seen: Omit<RehearsalSeen, 'atMs'>): void
  /** The endpoint set in use turned out to differ from where the plane was reached. */
  drifted(): void
  diagnosticWriteFailed(errno: string): void
  dropped(source: string, reason: string, count: number): void
  signs(): VitalSigns
}

/** Trouble that is none of the nine classes still has to be counted under one. */
const classOf = (trouble: Trouble): FailureClass => trouble.class ?? 'endpoint_unreachable'
const plusOne = (counts: ByClass, name: FailureClass): ByClass => ({ ...counts, [name]: (counts[name] ?? 0) + 1 })
const mostKinds = 16

export const openVitals = (clock: Clock): Vitals => {
  let signs: VitalSigns = {
    source: 'plane',
    clockSkewMs: 0,
    lastExchangeMs: null,
    renewal: { attempts: 0, failures: {}, lastAttemptMs: null, lastFailure: null },
    recovery: { attempts: {}, successes: 0, failures: {}, lastAttemptMs: null, lastFailure: null },
    rehearsal: null,
    driftTotal: 0,
    diagnosticWriteFailures: {},
    dropped: [],
  }
  const change = (patch: Partial<VitalSigns>): void => {
    signs = { ...signs, ...patch }
  }
  const seen = (trouble: Trouble): FailureSeen => ({ atMs: clock.nowMs(), trouble })
  return {
    exchanged: () => change({ lastExchangeMs: clock.nowMs() }),
    source: (source) => change({ source }),
    clockSkew: (ms) => change({ clockSkewMs: ms }),
    renewalTried: () => {
      const { renewal } = signs
      change({ renewal: { ...renewal, attempts: renewal.attempts + 1, lastAttemptMs: clock.nowMs() } })
    },
    renewalFailed: (trouble) => {
      const { renewal } = signs
      const failures = plusOne(renewal.failures, classOf(trouble))
      change({ renewal: { ...renewal, failures, lastFailure: seen(trouble) } })
    },
    recoveryTried: (because) => {
      const { recovery } = signs
      const attempts = plusOne(recovery.attempts, because)
      change({ recovery: { ...recovery, attempts, lastAttemptMs: clock.nowMs() } })
    },
    recoveryFailed: (trouble) => {
      const { recovery } = signs
      const failures = plusOne(recovery.failures, classOf(trouble))
      change({ recovery: { ...recovery, failures, lastFailure: seen(trouble) } })
    },
    recovered: () => change({ recovery: { ...signs.recovery, successes: signs.recovery.successes + 1 } }),
    rehearsed: (what) => change({ rehearsal: { ...what, atMs: clock.nowMs() } }),
    drifted: () => change({ driftTotal: signs.driftTotal + 1 }),
    diagnosticWriteFailed: (errno) => {
      const { diagnosticWriteFailures: counts } = signs
      if (!(errno in counts) && Object.keys(counts).length >= mostKinds) return
      change({ diagnosticWriteFailures: { ...counts, [errno]: (counts[errno] ?? 0) + 1 } })
    },
    dropped: (source, reason, count) => {
      const same = signs.dropped.find((one) => one.source === source && one.reason === reason)
      if (same === undefined && signs.dropped.length >= mostKinds) return
      const others = signs.dropped.filter((one) => one !== same)
      change({ dropped: [...others, { source, reason, count: (same?.count ?? 0) + count }] })
    },
    signs: () => signs,
  }
}
