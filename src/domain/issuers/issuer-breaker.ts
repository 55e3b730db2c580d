// Stops asking an outside issuer that does not answer. It opens after faults in a row, and then lets one request through at a time, at growing
// intervals, until one succeeds. A refusal is an answer and no fault. One for each issuer and replica; in memory.

export type Breaker =
  | { readonly kind: 'closed'; readonly faults: number }
  /** `sinceMs`: when it opened first. `probing`: one request is under way. */
  | {
      readonly kind: 'open'
      readonly sinceMs: number
      readonly probeAtMs: number
      readonly intervalMs: number
      readonly probing: boolean
      readonly why: string
    }

const faultsToOpen = 5
const firstIntervalMs = 2000
const longestIntervalMs = 60_000

export const closedBreaker: Breaker = { kind: 'closed', faults: 0 }

export type Passage =
  | { readonly kind: 'pass'; readonly breaker: Breaker; readonly probe: boolean }
  /** `retryAfterMs`: until the next probe. */
  | { readonly kind: 'stopped'; readonly sinceMs: number; readonly why: string; readonly retryAfterMs: number }

/** Asked before each request; the caller keeps `breaker`, and says afterwards how the request ended. */
export const passage = (breaker: Breaker, nowMs: number): Passage => {
  if (breaker.kind === 'closed') return { kind: 'pass', breaker, probe: false }
  const { sinceMs, why, probing, probeAtMs, intervalMs } = breaker
  if (!probing && nowMs >= probeAtMs) return { kind: 'pass', breaker: { ...breaker, probing: true }, probe: true }
  return { kind: 'stopped', sinceMs, why, retryAfterMs: probing ? intervalMs : Math.max(1, probeAtMs - nowMs) }
}

export type Outcome =
  /** A signature or a revocation: the issuer is there. */
  | { readonly kind: 'answered' }
  /** It is there, and does not sign what was ordered. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'fault'; readonly why: string }
  /** The caller went away before the issuer was asked: says nothing about it. */
  | { readonly kind: 'not-asked' }

/** `probe`: as `passage` has said when the request began. Others that end while the breaker is open began before it opened. */
export const afterRequest = (breaker: Breaker, outcome: Outcome, probe: boolean, nowMs: number): Breaker => {
  switch (outcome.kind) {
    case 'answered':
    case 'refused':
      return closedBreaker
    case 'not-asked':
      return breaker.kind === 'open' && probe ? { ...breaker, probing: false } : breaker
    case 'fault':
      return breaker.kind === 'closed'
        ? onceMore(breaker.faults + 1, outcome.why, nowMs)
        : probe
          ? later(breaker, outcome.why, nowMs)
          : breaker
  }
}

const onceMore = (faults: number, why: string, nowMs: number): Breaker =>
  faults < faultsToOpen
    ? { kind: 'closed', faults }
    : {
        kind: 'open',
        sinceMs: nowMs,
        probeAtMs: nowMs + firstIntervalMs,
        intervalMs: firstIntervalMs,
        probing: false,
        why,
      }

const later = (breaker: Extract<Breaker, { kind: 'open' }>, why: string, nowMs: number): Breaker => {
  const intervalMs = Math.min(2 * breaker.intervalMs, longestIntervalMs)
  return { ...breaker, probing: false, probeAtMs: nowMs + intervalMs, intervalMs, why }
}
