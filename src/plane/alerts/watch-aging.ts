// Alerts about the plane's own certificates. They follow the clock, so they are looked at now and then.

import { agingAlertKinds, alertsOfAging, type AgingFacts } from '#domain/alerts/alert-wanted.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import type { Authority, ServerIdentity } from '#plane/authority/authority.ts'
import { settleAlert, type SettleDeps } from './settle-alert.ts'
import type { StandingAlerts } from './standing-alerts.ts'

export type WatchAgingDeps = SettleDeps & {
  readonly standing: StandingAlerts
  readonly authority: Pick<Authority, 'aging' | 'lost' | 'longestLeafMs'>
  /** What the listeners present now, by the listener's name. */
  readonly servers: () => Readonly<Record<string, ServerIdentity>>
}

export const watchAging = async (deps: WatchAgingDeps): Promise<void> => {
  const wanted = alertsOfAging({
    servers: Object.entries(deps.servers()).map(([subject, identity]) => ({ subject, ...lifeOf(identity) })),
    authorities: deps.authority.aging(),
    lost: deps.authority.lost(),
    signs: deps.authority.longestLeafMs() > 0,
    nowMs: deps.clock.nowMs(),
  })
  const over = [...deps.standing.all()]
    .filter(({ kind }) => agingAlertKinds.includes(kind))
    .filter(({ kind, subject }) => !wanted.some((one) => one.kind === kind && one.subject === subject))
  for (const about of over) await settleAlert(deps, async () => ({ about, wanted: null, reliedOn: [] }))
  for (const about of wanted) await settleAlert(deps, async () => ({ about, wanted: about, reliedOn: [] }))
}

const lifeOf = ({ chainPem }: ServerIdentity): Omit<AgingFacts['servers'][number], 'subject'> => {
  const [leaf] = allFromPem('CERTIFICATE', chainPem) ?? []
  const certificate = leaf === undefined ? null : parseCertificate(leaf)
  if (certificate === null || certificate.kind === 'malformed') throw new Error('a listener presents no certificate')
  return certificate
}
