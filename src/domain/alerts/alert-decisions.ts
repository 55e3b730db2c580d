// When an alert is raised, raised again, acknowledged and resolved. A wanted alert is a level, not an event: a caller that
// missed an event and asks again gets the same decision.

import { isoTime } from '#platform/clock.ts'
import { acknowledgementOf, alertKey, type Alert } from './alert.ts'
import { alertRule, type WantedAlert } from './alert-kinds.ts'
import {
  readOf,
  type Change,
  type Read,
  type Row,
  boundedText,
  decided,
  entry,
  type Attribution,
  type Decided,
} from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { EntryBody, EntryDraft } from '#domain/core/journal-entry.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type AlertFacts = {
  /** Null: nothing of this kind and subject is wrong. */
  readonly wanted: WantedAlert | null
  /** The last alert of this kind and subject, open or resolved. */
  readonly existing: Row<Alert> | null
  /** The rows that say what is wanted. */
  readonly reliedOn: readonly Read[]
  readonly newId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type AlertDecided = Decided & { readonly alert: Alert }

export const decideAlert = (facts: AlertFacts): AlertDecided | Unchanged => {
  const { existing, wanted } = facts
  const unresolved = existing !== null && existing.value.state.kind !== 'resolved' ? existing.value : null
  if (wanted === null) return unresolved === null ? { kind: 'unchanged' } : resolve(facts, unresolved)
  if (unresolved === null) return raise(facts, wanted, [])
  if (!isNews(unresolved, wanted)) return { kind: 'unchanged' }
  return raise(facts, wanted, [resolvedEntry(facts, unresolved)])
}

/** In the commit of what it is about: an alert that a crash could lose would not be raised again. */
export const withAlert = (change: Change, facts: AlertFacts): Change => {
  const verdict = decideAlert(facts)
  if (verdict.kind === 'unchanged') return change
  return {
    ...change,
    reads: [...change.reads, ...verdict.change.reads],
    writes: [...change.writes, ...verdict.change.writes],
    entries: [...change.entries, ...verdict.change.entries] as Change['entries'],
  }
}

/** It ended and began again between two looks, or became worse: an earlier acknowledgement does not cover it. */
const isNews = (existing: Alert, wanted: WantedAlert): boolean =>
  (wanted.sinceMs !== null && wanted.sinceMs > existing.sinceMs) ||
  (wanted.severity === 'critical' && existing.severity === 'warning')

/** Whole, with its evidence and what to do about it: tables cut what they have no room for. */
const longestReason = 800

const raise = (facts: AlertFacts, wanted: WantedAlert, before: readonly EntryDraft[]): AlertDecided => {
  const { newId: id, nowMs, by } = facts
  const { kind, subject, node, severity } = wanted
  const sinceMs = wanted.sinceMs ?? nowMs
  const reason = boundedText(wanted.reason, longestReason)
  const alert: Alert = { id, kind, subject, node, severity, sinceMs, reason, state: { kind: 'open' } }
  return written(facts, alert, [...before, entry(by, nowMs, 'alert.raised', { node }, bodyOf(alert))])
}

const resolve = (facts: AlertFacts, existing: Alert): AlertDecided =>
  written(facts, resolvedAt(existing, facts.nowMs), [resolvedEntry(facts, existing)])

const resolvedAt = (alert: Alert, atMs: number): Alert => {
  const acknowledged = acknowledgementOf(alert.state)
  return { ...alert, state: { kind: 'resolved', atMs, ...(acknowledged === null ? {} : { acknowledged }) } }
}

const resolvedEntry = ({ by, nowMs }: Pick<AlertFacts, 'by' | 'nowMs'>, alert: Alert): EntryDraft => {
  const body = { ...bodyOf(resolvedAt(alert, nowMs)), lasted_ms: Math.max(0, nowMs - alert.sinceMs) }
  return entry(by, nowMs, 'alert.resolved', { node: alert.node }, body)
}

const written = (facts: AlertFacts, alert: Alert, entries: readonly [...EntryDraft[], EntryDraft]): AlertDecided => ({
  ...decided({
    reads: [...facts.reliedOn, readOf('alert', alertKey(alert), facts.existing)],
    writes: [{ put: 'alert', value: alert }],
    entries,
  }),
  alert,
})

export type AcknowledgeFacts = {
  readonly alert: Row<Alert> | null
  readonly note: string | null
  readonly by: Attribution
  readonly nowMs: number
}

/** The first acknowledgement stays; one of what is over already changes nothing. */
export const decideAcknowledge = ({
  alert,
  note,
  by,
  nowMs,
}: AcknowledgeFacts): AlertDecided | Refusal | { readonly kind: 'unchanged'; readonly alert: Alert } => {
  if (alert === null) return refuse('ALERT_NOT_FOUND')
  if (alert.value.state.kind !== 'open') return { kind: 'unchanged', alert: alert.value }
  const said = note === null ? null : boundedText(note)
  const acknowledged: Alert = {
    ...alert.value,
    state: { kind: 'acknowledged', by: by.actor, atMs: nowMs, note: said },
  }
  const body = { ...bodyOf(acknowledged), note: said }
  const ends = alertRule(acknowledged.kind).endedBy === 'acknowledgement'
  const after: Alert = ends ? resolvedAt(acknowledged, nowMs) : acknowledged
  return {
    ...decided({
      reads: [readOf('alert', alertKey(acknowledged), alert)],
      writes: [{ put: 'alert', value: after }],
      entries: [
        entry(by, nowMs, 'alert.acknowledged', { node: acknowledged.node }, body),
        ...(ends ? [resolvedEntry({ by, nowMs }, acknowledged)] : []),
      ],
    }),
    alert: after,
  }
}

/** Everything a receiver of the entry needs: the row may have moved on by then. */
const bodyOf = ({ id, kind, subject, severity, sinceMs, reason, state }: Alert): EntryBody => ({
  alert: id,
  kind,
  subject,
  severity,
  state: state.kind,
  since: isoTime(sinceMs),
  reason,
})
