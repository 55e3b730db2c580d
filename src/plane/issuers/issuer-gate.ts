// What stands before an outside issuer on this replica: so many requests at once, so many that wait, and a breaker. A slot is taken before
// anything is committed for a caller, so an issuer that is away costs neither a commit nor a token. One gate for each issuer.

import { boundedText } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { afterRequest, closedBreaker, passage, type Outcome } from '#domain/issuers/issuer-breaker.ts'
import { admission, longestWaitMs, measured, slots, startingPace } from '#domain/issuers/issuer-pace.ts'
import type { Core } from '#plane/core/core.ts'
import { openRetrySpacing } from '#plane/limits/retry-times.ts'

export type IssuerSlot = {
  readonly kind: 'slot'
  /** Once, with what became of the request; each further call changes nothing. */
  leave(outcome: Outcome): void
}

export type GateView = {
  readonly asking: number
  readonly waiting: number
  readonly perSecond: number
  /** Null: it is asked. */
  readonly away: { readonly sinceMs: number; readonly why: string } | null
  /** When it last answered this replica; null: not since the start. */
  readonly answeredAtMs: number | null
  /** What it last refused to sign, for an hour: it is not away, and somebody has to set it right. */
  readonly refused: { readonly atMs: number; readonly why: string } | null
}

export type IssuerGate = {
  /** Waits where all slots are taken, and no longer than is useful. */
  enter(): Promise<IssuerSlot | Refusal>
  view(): GateView
}

/** A rate over less would follow single answers. */
const measureMs = 1000
const refusalShownMs = 3_600_000

type Waiter = { readonly admit: (slot: IssuerSlot | Refusal) => void; readonly cancel: () => void }

export const openIssuerGate = ({ clock, timers }: Pick<Core, 'clock' | 'timers'>, name: string): IssuerGate => {
  let breaker = closedBreaker
  let asking = 0
  let { perSecond } = startingPace
  let answeredAtMs: number | null = null
  let refused: GateView['refused'] = null
  /** Since when every slot has been taken, and the answers since then. */
  let full: { readonly sinceMs: number; answers: number } | null = null
  const waiters = new Set<Waiter>()
  const spacing = openRetrySpacing(clock)
  const pace = () => ({ asking, waiting: waiters.size, perSecond })

  const away = (why: string, afterMs: number, apartMs = 1000 / perSecond): Refusal => ({
    ...refuse('ISSUER_UNAVAILABLE', `${name}: ${why}`),
    retryAfterMs: spacing.nextMs(afterMs, apartMs),
  })

  const measure = (nowMs: number): void => {
    if (full === null || nowMs - full.sinceMs < measureMs) return
    ;({ perSecond } = measured(pace(), full.answers, nowMs - full.sinceMs))
    full = { sinceMs: nowMs, answers: 0 }
  }

  const take = (probe: boolean): IssuerSlot => {
    asking += 1
    if (asking >= slots) full ??= { sinceMs: clock.monotonicMs(), answers: 0 }
    let left = false
    return {
      kind: 'slot',
      leave(outcome) {
        if (left) return
        left = true
        const nowMs = clock.monotonicMs()
        asking -= 1
        if (outcome.kind === 'answered' || outcome.kind === 'refused') answeredAtMs = clock.nowMs()
        if (outcome.kind === 'refused') refused = { atMs: clock.nowMs(), why: boundedText(outcome.why) }
        if (full !== null && outcome.kind !== 'not-asked') full.answers += 1
        measure(nowMs)
        breaker = afterRequest(breaker, outcome, probe, nowMs)
        admitNext()
        if (asking < slots) full = null
      },
    }
  }

  const pass = (): IssuerSlot | Refusal => {
    const through = passage(breaker, clock.monotonicMs())
    if (through.kind === 'stopped') return away(through.why, through.retryAfterMs)
    breaker = through.breaker
    return take(through.probe)
  }

  /** Also while the breaker is open: those that wait are told at once. */
  const admitNext = (): void => {
    for (const waiter of waiters) {
      if (asking >= slots && breaker.kind === 'closed') return
      waiters.delete(waiter)
      waiter.cancel()
      waiter.admit(pass())
    }
  }

  return {
    enter() {
      const verdict = admission(pace())
      if (verdict.kind === 'ask') return Promise.resolve(pass())
      // What is away is not waited for.
      const through = passage(breaker, clock.monotonicMs())
      if (through.kind === 'stopped') return Promise.resolve(away(through.why, through.retryAfterMs))
      if (verdict.kind === 'come-back')
        return Promise.resolve(
          away('more requests wait for it than it serves in time', verdict.afterMs, verdict.apartMs),
        )
      return new Promise((resolve) => {
        const cancel = timers.after(longestWaitMs, () => {
          waiters.delete(waiter)
          resolve(away('it is slower than it was', 1000))
        })
        const waiter: Waiter = { admit: resolve, cancel }
        waiters.add(waiter)
      })
    },
    view: () => ({
      ...pace(),
      // The breaker counts by monotonic time, and people read the other.
      away:
        breaker.kind === 'closed'
          ? null
          : { sinceMs: clock.nowMs() - (clock.monotonicMs() - breaker.sinceMs), why: breaker.why },
      answeredAtMs,
      refused: refused !== null && clock.nowMs() - refused.atMs < refusalShownMs ? refused : null,
    }),
  }
}

/** What a request that failed says of its issuer. */
export const faultOf = (error: unknown): Outcome => ({
  kind: 'fault',
  why: boundedText(error instanceof Error ? error.message : String(error)),
})
