// The alert about an outside issuer that does not answer. Breakers are in the memory of each replica, so each says what it finds; the alert
// ends with an answer that the issuer has given to any of them since it began.

import type { Alert } from '#domain/alerts/alert.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { clockWords } from '#domain/issuers/issuer-clock.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { raiseAlert, reconcileAlert, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import type { Core } from '#plane/core/core.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { OutsideIssuers } from './open-outside-issuers.ts'

export type WatchParts = {
  readonly known: Pick<KnownIssuers, 'all' | 'find'>
  readonly outside: Pick<OutsideIssuers, 'health' | 'login'>
  readonly alerts: Pick<UnresolvedAlerts, 'has' | 'all'>
}

const kind = 'issuer_unavailable'
const loginKind = 'issuer_login_ending'
const lookEveryMs = 5000

export const watchIssuers = (core: Core, { known, outside, alerts }: WatchParts): UpkeepTask => {
  const isOver = (issuer: OutsideIssuer | null, sinceMs: number): boolean => {
    if (issuer === null || issuer.state.kind !== 'enabled') return true
    const { away, answeredAtMs } = outside.health(issuer)
    return away === null && answeredAtMs !== null && answeredAtMs >= sinceMs
  }
  const saidOfClock = new Set<string>()
  /** Once while it lasts. */
  const lookAtClock = (issuer: OutsideIssuer): void => {
    const words = clockWords(outside.health(issuer).aheadMs)
    if (words === null) return void saidOfClock.delete(issuer.id)
    if (saidOfClock.has(issuer.id)) return
    saidOfClock.add(issuer.id)
    core.log.warn(
      { issuer: issuer.name },
      `of an outside issuer: ${words}; what it signs may not be valid yet for others`,
    )
  }
  const end = (alert: Pick<Alert, 'kind' | 'subject'>) =>
    reconcileAlert(core, alert, () => ({ wanted: null, reliedOn: [] }))
  /** A replica that has no login says nothing: another one may have one that ends. */
  const lookAtLogin = async ({ name: subject, id, state }: OutsideIssuer): Promise<void> => {
    const login = outside.login({ id })
    if (state.kind !== 'enabled' || login === null || login.kind === 'none') return
    const isOpen = alerts.has(loginKind, subject)
    if (login.kind === 'good') return void (isOpen && (await end({ kind: loginKind, subject })))
    const untilMs = login.kind === 'ending' ? login.untilMs : null
    if (!isOpen) await raiseAlert(core, wantedAlert(loginKind, subject, { issuer: subject, untilMs, why: login.why }))
  }
  return {
    name: 'outside issuers',
    where: 'each',
    everyMs: lookEveryMs,
    async run() {
      for (const issuer of known.all()) {
        const { away } = outside.health(issuer)
        if (away === null || issuer.state.kind !== 'enabled' || alerts.has(kind, issuer.name)) continue
        const evidence = { issuer: issuer.name, why: away.why }
        await raiseAlert(core, wantedAlert(kind, issuer.name, evidence, { sinceMs: away.sinceMs }))
      }
      for (const alert of alerts.all()) {
        if (alert.kind !== kind || !isOver(known.find(alert.subject), alert.sinceMs)) continue
        await end(alert)
      }
      for (const issuer of known.all()) {
        lookAtClock(issuer)
        await lookAtLogin(issuer)
      }
      for (const alert of alerts.all())
        if (alert.kind === loginKind && known.find(alert.subject)?.state.kind !== 'enabled') await end(alert)
      // A row that somebody has changed in the database is noticed by reading it: its alert is raised by the store (plane/seals).
      if (known.all().length > 0) await readIssuers(core.store)
    },
  }
}
