// What the agent counts about itself: the figures behind its metrics and its reports. All functions here are pure.

import type { RehearsalStep, FailureClass } from '#domain/core/node.ts'
import type { Trouble } from '#agent/core/trouble.ts'

export type FailureSeen = { readonly atMs: number; readonly trouble: Trouble }
export type ByClass = Partial<Record<FailureClass, number>>

/** `begun`: by the helper. The others: the plane has that result. */
export type TaskEvent = 'begun' | 'completed' | 'failed' | 'unknown' | 'refused'

export type RehearsalSeen = {
  readonly atMs: number
  readonly outcome: 'passed' | 'failed'
  readonly step: RehearsalStep | null
  readonly why: string | null
}

export type Figures = {
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
  readonly tasks: Readonly<Record<TaskEvent, number>>
  readonly diagnosticWriteFailures: Readonly<Record<string, number>>
  readonly dropped: readonly { readonly source: string; readonly reason: string; readonly count: number }[]
}

export const noFigures: Figures = {
  source: 'plane',
  clockSkewMs: 0,
  lastExchangeMs: null,
  renewal: { attempts: 0, failures: {}, lastAttemptMs: null, lastFailure: null },
  recovery: { attempts: {}, successes: 0, failures: {}, lastAttemptMs: null, lastFailure: null },
  rehearsal: null,
  driftTotal: 0,
  tasks: { begun: 0, completed: 0, failed: 0, unknown: 0, refused: 0 },
  diagnosticWriteFailures: {},
  dropped: [],
}

export type Counted =
  /** An authenticated exchange with the plane has just succeeded. */
  | { readonly kind: 'exchanged' }
  | { readonly kind: 'clock-skew'; readonly ms: number }
  | { readonly kind: 'renewal-tried' }
  | { readonly kind: 'renewal-failed'; readonly trouble: Trouble }
  | { readonly kind: 'recovery-tried'; readonly because: FailureClass }
  | { readonly kind: 'recovery-failed'; readonly trouble: Trouble }
  | { readonly kind: 'recovered' }
  | ({ readonly kind: 'rehearsed' } & Omit<RehearsalSeen, 'atMs'>)
  /** The endpoint set in use turned out to differ from where the plane was reached. */
  | { readonly kind: 'drifted' }
  | { readonly kind: 'task'; readonly event: TaskEvent }
  | { readonly kind: 'diagnostic-write-failed'; readonly errno: string }
  | { readonly kind: 'dropped'; readonly source: string; readonly reason: string; readonly count: number }

/** Trouble that is none of the nine classes still has to be counted under one. */
const classOf = (trouble: Trouble): FailureClass => trouble.class ?? 'endpoint_unreachable'
const plusOne = (counts: ByClass, name: FailureClass): ByClass => ({ ...counts, [name]: (counts[name] ?? 0) + 1 })
const mostKinds = 16

export const counted = (figures: Figures, what: Counted, nowMs: number): Figures => {
  const { renewal, recovery } = figures
  switch (what.kind) {
    case 'exchanged':
      return { ...figures, lastExchangeMs: nowMs }
    case 'clock-skew':
      return { ...figures, clockSkewMs: what.ms }
    case 'renewal-tried':
      return { ...figures, renewal: { ...renewal, attempts: renewal.attempts + 1, lastAttemptMs: nowMs } }
    case 'renewal-failed':
      return { ...figures, renewal: { ...renewal, ...failedWith(renewal.failures, what.trouble, nowMs) } }
    case 'recovery-tried': {
      const attempts = plusOne(recovery.attempts, what.because)
      return { ...figures, recovery: { ...recovery, attempts, lastAttemptMs: nowMs } }
    }
    case 'recovery-failed':
      return { ...figures, recovery: { ...recovery, ...failedWith(recovery.failures, what.trouble, nowMs) } }
    case 'recovered':
      return { ...figures, recovery: { ...recovery, successes: recovery.successes + 1 } }
    case 'rehearsed': {
      const { outcome, step, why } = what
      return { ...figures, rehearsal: { outcome, step, why, atMs: nowMs } }
    }
    case 'drifted':
      return { ...figures, driftTotal: figures.driftTotal + 1 }
    case 'task':
      return { ...figures, tasks: { ...figures.tasks, [what.event]: figures.tasks[what.event] + 1 } }
    case 'diagnostic-write-failed': {
      const { diagnosticWriteFailures: counts } = figures
      if (!(what.errno in counts) && Object.keys(counts).length >= mostKinds) return figures
      return { ...figures, diagnosticWriteFailures: { ...counts, [what.errno]: (counts[what.errno] ?? 0) + 1 } }
    }
    case 'dropped': {
      const { source, reason, count } = what
      const same = figures.dropped.find((one) => one.source === source && one.reason === reason)
      if (same === undefined && figures.dropped.length >= mostKinds) return figures
      const others = figures.dropped.filter((one) => one !== same)
      return { ...figures, dropped: [...others, { source, reason, count: (same?.count ?? 0) + count }] }
    }
  }
}

const failedWith = (
  failures: ByClass,
  trouble: Trouble,
  atMs: number,
): { readonly failures: ByClass; readonly lastFailure: FailureSeen } => ({
  failures: plusOne(failures, classOf(trouble)),
  lastFailure: { atMs, trouble },
})
