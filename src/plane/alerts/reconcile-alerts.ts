// Brings the alerts in the store into line with what should be open: reads, decides, commits and publishes. A source says
// what should be open of its kinds, or what has happened; everything else about alerts is here. A race that is lost is
// decided again.

import { alertKey, type Alert } from '#domain/alerts/alert.ts'
import { decideAlert } from '#domain/alerts/alert-decisions.ts'
import { alertRule, type AlertKind, type WantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { Read, Row } from '#domain/core/change.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Feed } from '#plane/core/feed.ts'
import { pages, type PageReading } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { FlowCore } from '#plane/core/core.ts'

/** The alerts that are not resolved, in memory: as the store has them at start, and as every commit changes them. */
export type UnresolvedAlerts = {
  has(kind: AlertKind, subject: string): boolean
  all(): Iterable<Alert>
}

/** Says all that should be open of its kinds. */
export type AlertSource = {
  readonly kinds: readonly AlertKind[]
  wanted(): Promise<readonly WantedAlert[]> | readonly WantedAlert[]
  /** Which of the alerts that are not wanted are over; without this, all of them. */
  over?(unwanted: readonly Alert[]): Promise<readonly Alert[]> | readonly Alert[]
  /** What to say where there is an unresolved alert of the same kind and subject; without this, what is wanted. */
  extend?(wanted: WantedAlert, unresolved: Alert): WantedAlert
}

/** What one look at an alert found. `reliedOn`: the rows that say it; the commit is lost if one of them has changed. */
export type AlertLook = { readonly wanted: WantedAlert | null; readonly reliedOn: readonly Read[] }

const by = { actor: 'system:alerts', source: null, correlation: null }

/**
 * One alert. `look` reads what it needs each time it is called; it is given what is unresolved. `busy`: this commit lost
 * every race, and is to be tried again later.
 */
export const reconcileAlert = async (
  core: FlowCore,
  about: Pick<Alert, 'kind' | 'subject'>,
  look: (unresolved: Alert | null) => Promise<AlertLook> | AlertLook,
): Promise<'settled' | 'busy'> => {
  const done = await commitDecision(core, async () => {
    const existing = await core.store.get('alert', alertKey(about))
    const state = await look(existing === null || existing.value.state.kind === 'resolved' ? null : existing.value)
    const nowMs = core.clock.nowMs()
    return decideAlert({ ...state, existing, newId: sortableId(nowMs, core.random), by, nowMs })
  })
  return done.kind === 'refused' ? 'busy' : 'settled'
}

/** Something has happened, or was met, that a person should look at. */
export const raiseAlert = (core: FlowCore, wanted: WantedAlert): Promise<'settled' | 'busy'> =>
  reconcileAlert(core, wanted, () => ({ wanted, reliedOn: [] }))

/** Raises what the source names, then resolves what it no longer does. What stays busy is found by the next look. */
export const reconcileSource = async (
  core: FlowCore,
  alerts: Pick<UnresolvedAlerts, 'all'>,
  source: AlertSource,
): Promise<void> => {
  const wanted = await source.wanted()
  for (const one of wanted) {
    await reconcileAlert(core, one, (unresolved) => ({
      wanted: unresolved === null ? one : (source.extend?.(one, unresolved) ?? one),
      reliedOn: [],
    }))
  }
  const keys = new Set(wanted.map(alertKey))
  const unwanted = [...alerts.all()].filter(
    (alert) => source.kinds.includes(alert.kind) && !keys.has(alertKey(alert)) && mayResolve(alert),
  )
  const over = source.over === undefined ? unwanted : await source.over(unwanted)
  for (const alert of over) await reconcileAlert(core, alert, () => ({ wanted: null, reliedOn: [] }))
}

const mayResolve = ({ kind, state }: Alert): boolean => {
  switch (alertRule(kind).endedBy) {
    case 'cause':
      return true
    case 'both':
      return state.kind === 'acknowledged'
    case 'acknowledgement':
      return false
  }
}

const pageSize = 500

export const openUnresolvedAlerts = async (store: Pick<Store, 'alerts'>, feed: Feed): Promise<UnresolvedAlerts> => {
  const unresolved = new Map<string, Alert>()
  const changed = new Set<string>()
  feed.subscribe('unresolved alerts', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'alert') continue
      const key = alertKey(write.value)
      changed.add(key)
      if (write.value.state.kind === 'resolved') unresolved.delete(key)
      else unresolved.set(key, write.value)
    }
  })
  const reading: PageReading<Row<Alert>, string> = {
    limit: pageSize,
    read: (after, limit) => store.alerts({ unresolvedOnly: true, after, limit }),
    placeOf: ({ value }) => value.id,
  }
  for await (const page of pages(reading)) {
    for (const { value } of page) {
      // What was committed while we read is newer than what we read.
      if (!changed.has(alertKey(value))) unresolved.set(alertKey(value), value)
    }
  }
  return {
    has: (kind, subject) => unresolved.size > 0 && unresolved.has(alertKey({ kind, subject })),
    all: () => unresolved.values(),
  }
}
