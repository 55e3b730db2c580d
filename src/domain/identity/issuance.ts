// An operator halts issuance for the whole domain, and resumes it. Every decision to issue reads the domain's row
// (`issuanceStopped`), so that a halt beats what was decided before it. The plane's own certificates and authorities go on:
// without them an operator could not resume.

import { alertKey, type Alert } from '#domain/alerts/alert.ts'
import { withAlert, type AlertFacts } from '#domain/alerts/alert-decisions.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { readOf, type Row, boundedText, decided, entry, type Attribution, type Decided } from '#domain/core/change.ts'
import { openIssuance, type DomainSettings } from '#domain/core/domain-settings.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type Issuance =
  | { readonly kind: 'open' }
  /** `renewals`: nodes that are in still renew. */
  | {
      readonly kind: 'halted'
      readonly by: string
      readonly sinceMs: number
      readonly reason: string
      readonly renewals: boolean
    }

export type Halted = Extract<Issuance, { kind: 'halted' }>

/** In a sentence, for operators of the plane; null: all is well. */
export const haltInWords = ({ issuance }: DomainSettings): string | null =>
  issuance.kind === 'open' ? null : inWords(issuance)

const inWords = ({ by, reason, renewals }: Halted): string =>
  `${by} has halted issuance${renewals ? ' (renewals go on)' : ''}: ${reason}`

export type HaltFacts = ResumeFacts & { readonly reason: string; readonly renewals: boolean }

export type IssuanceDecided = Decided & { readonly issuance: Issuance }

/** Halted already: from now on for this reason and in this way, and still since then. */
export const decideHalt = (facts: HaltFacts): IssuanceDecided => {
  const { domain, by, nowMs, renewals } = facts
  const before = domain.value.issuance
  const reason = boundedText(facts.reason)
  const sinceMs = before.kind === 'halted' ? before.sinceMs : nowMs
  const issuance: Halted = { kind: 'halted', by: by.actor, sinceMs, reason, renewals }
  // An acknowledgement covers only the halt as it was then.
  const isNews = before.kind === 'open' || before.reason !== reason || before.renewals !== renewals
  return written(facts, issuance, 'issuance.halted', { reason, renewals }, isNews ? nowMs : null)
}

export type ResumeFacts = {
  readonly domain: Row<DomainSettings>
  /** The last raising of the alert for it. */
  readonly alert: Row<Alert> | null
  readonly newAlertId: string
  readonly by: Attribution
  readonly nowMs: number
}

export const decideResume = (facts: ResumeFacts): IssuanceDecided | Refusal => {
  const before = facts.domain.value.issuance
  if (before.kind === 'open') return refuse('ISSUANCE_NOT_HALTED')
  const body = {
    halted_by: before.by,
    halted_for_ms: Math.max(0, facts.nowMs - before.sinceMs),
    reason: before.reason,
    renewals: before.renewals,
  }
  return written(facts, openIssuance, 'issuance.resumed', body, null)
}

const written = (
  { domain, alert, newAlertId: newId, by, nowMs }: ResumeFacts,
  issuance: Issuance,
  type: 'issuance.halted' | 'issuance.resumed',
  body: Readonly<Record<string, string | number | boolean>>,
  alertSinceMs: number | null,
): IssuanceDecided => {
  const wanted =
    issuance.kind === 'open'
      ? null
      : wantedAlert('issuance_halted', domain.value.name, inWords(issuance), { sinceMs: alertSinceMs })
  const alerted: AlertFacts = { wanted, existing: alert, reliedOn: [], newId, by, nowMs }
  const change = {
    reads: [readOf('domain', 'domain', domain)],
    writes: [{ put: 'domain', value: { ...domain.value, issuance } }],
    entries: [entry(by, nowMs, type, {}, body)],
  } as const
  return { ...decided(withAlert(change, alerted)), issuance }
}

export const haltAlertKey = ({ name }: DomainSettings): string => alertKey({ kind: 'issuance_halted', subject: name })
