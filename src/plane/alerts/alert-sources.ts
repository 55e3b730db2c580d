// What should be open because of the age of the plane's own certificates, the clocks of replicas and withdrawn
// authorities. These follow time, or many rows, so the leader looks at them now and then.

import { agingAlertKinds, alertsOfAging } from '#domain/alerts/alert-wanted.ts'
import { wantedAlert, type CertificateLife } from '#domain/alerts/alert-kinds.ts'
import { livesBy } from '#domain/core/certificate.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import type { Clock } from '#platform/clock.ts'
import type { Authority, ServerIdentity } from '#plane/authority/authority.ts'
import { everyNode } from '#plane/core/pages.ts'
import type { PutBack } from '#plane/foundation/keep-witness.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import { raiseAlert, type AlertSource } from './reconcile-alerts.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

/** `servers`: what the listeners present now, by the listener's name. */
export const agingSource = (
  clock: Clock,
  authority: Pick<Authority, 'aging' | 'lost' | 'longestLeafMs'>,
  servers: () => Readonly<Record<string, ServerIdentity>>,
): AlertSource => ({
  kinds: agingAlertKinds,
  wanted: () =>
    alertsOfAging({
      servers: Object.entries(servers()).map(([subject, identity]) => ({ subject, ...lifeOf(identity) })),
      authorities: authority.aging(),
      lost: authority.lost(),
      signs: authority.longestLeafMs() > 0,
      nowMs: clock.nowMs(),
    }),
})

const lifeOf = ({ chainPem }: ServerIdentity): CertificateLife => {
  const [leaf] = allFromPem('CERTIFICATE', chainPem) ?? []
  const certificate = leaf === undefined ? null : parseCertificate(leaf)
  if (certificate === null || certificate.kind === 'malformed') throw new Error('a listener presents no certificate')
  return certificate
}

/** A plane with a wrong clock decides nothing, so the leader raises this from what every replica writes with its lease. */
export const clocksSource = (replicas: Pick<Replicas, 'leased'>, clockToleranceMs: number): AlertSource => ({
  kinds: ['clock_off'],
  wanted: async () =>
    (await replicas.leased()).flatMap(({ name, clockOffsetMs }) =>
      clockOffsetMs === null || Math.abs(clockOffsetMs) <= clockToleranceMs
        ? []
        : [wantedAlert('clock_off', name, { replica: name, offsetMs: clockOffsetMs })],
    ),
})

const lookEveryMs = 30_000
const pageSize = 200

/**
 * The alert about a withdrawn authority is over once no node lives by a certificate of it. That takes a look at every node,
 * so it is taken now and then, and only while there is such an alert.
 */
export const withdrawnSource = (core: Pick<Core, 'store' | 'clock' | 'timers'>): AlertSource => {
  let lookedAtMs = -Infinity
  return {
    kinds: ['authority_compromised'],
    // Raised in the commit of the withdrawal.
    wanted: () => [],
    async over(alerts) {
      const nowMs = core.clock.monotonicMs()
      if (alerts.length === 0 || nowMs - lookedAtMs < lookEveryMs) return []
      lookedAtMs = nowMs
      const issuers = (await core.store.issuers()).map(({ value }) => value)
      const withdrawn = issuers.filter(({ compromisedAtMs }) => compromisedAtMs !== null).map(({ id }) => id)
      return (await anybodyLivesBy(core, withdrawn)) ? [] : alerts
    },
  }
}

const anybodyLivesBy = async (
  { store, timers }: Pick<Core, 'store' | 'timers'>,
  issuers: readonly IssuerId[],
): Promise<boolean> => {
  for await (const node of everyNode(store, { limit: pageSize, timers })) if (livesBy(node, issuers)) return true
  return false
}

/**
 * The newer store was put back after an older copy of it had run in doubt. The record goes aside behind the alert: a start
 * that dies between the two, or cannot commit, is followed by one that raises it.
 */
export const raisePutBack = async (
  core: FlowCore & Pick<Core, 'log'>,
  domainName: string,
  putBack: PutBack | null,
): Promise<void> => {
  if (putBack === null) return
  const { meanwhile } = putBack
  const nowMs = core.clock.nowMs()
  try {
    const evidence = { meanwhile, file: putBack.nameAside(nowMs) }
    const wanted = wantedAlert('store_put_back', domainName, evidence, { sinceMs: nowMs })
    core.log.warn({ meanwhile }, wanted.reason)
    await raiseAlert(core, wanted)
    putBack.setAside(nowMs)
  } catch (error) {
    core.log.error({ err: error }, 'the alert store_put_back could not be raised; the next start tries again')
  }
}
