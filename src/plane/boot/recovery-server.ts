// The recovery listener, put together. It shares its limits with the node listener: an anonymous caller does not get twice the
// budget for calling both.

import type { VerifySignature } from '#pki/signature.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import type { ChannelParts } from '#plane/channel/channel-parts.ts'
import type { SightingJudge } from '#plane/continuity/judge-sighting.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { Core } from '#plane/core/core.ts'
import type { NodeLimits } from './node-limits.ts'
import type { Issuance } from '#plane/issuers/open-issuance.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { troubleOf } from '#plane/http/http-reply.ts'
import { openRecoveryListener, type RecoveryListener } from '#plane/http/recovery-listener.ts'
import { recoveryRoutes } from '#plane/recovery/recovery-routes.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import type { TurnedAway } from './turned-away.ts'
import type { MachineCalls } from '#plane/http/http-app.ts'
import type { Metrics } from '#plane/metrics/open-metrics.ts'
import type { Alerting } from '#plane/alerts/alerting.ts'
import { followRefusals } from './machine-refusals.ts'

export type RecoveryServerParts = {
  readonly issuance: Pick<Issuance, 'issuer' | 'orders'>
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly urls: () => PlaneUrls
  /** Those of the node listener. */
  readonly limits: NodeLimits
  readonly channel: Pick<ChannelParts, 'peerBook' | 'secondHolders'>
  readonly sightingJudge: SightingJudge
  readonly copiedImages: CopiedImages
  readonly correlation: () => string
  readonly turnedAway: TurnedAway
  readonly connections: number
  readonly balancers: Balancers | null
  readonly metrics: Pick<Metrics, 'refused' | 'rehearsed'>
  readonly alerting: Pick<Alerting, 'onRefusal'>
}

export type RecoveryServer = { readonly listener: RecoveryListener }

export const openRecoveryServer = async (core: Core, parts: RecoveryServerParts): Promise<RecoveryServer> => {
  const { store, timers, log } = core
  const { recovery, limits, channel, metrics, alerting } = parts
  const routes = recoveryRoutes(core, {
    anonymousBudget: limits.anonymousBudget,
    challenges: limits.challenges,
    admission: limits.admission,
    writeLimit: limits.writeLimit,
    issuer: parts.issuance.issuer,
    orders: parts.issuance.orders,
    verifyProof: parts.verifyProof,
    recovery,
    domainName: parts.domainName,
    urls: parts.urls,
    peerBook: channel.peerBook,
    secondHolders: channel.secondHolders,
    sightingJudge: parts.sightingJudge,
    copiedImages: parts.copiedImages,
    onRehearsal: (outcome) => metrics.rehearsed(outcome),
  })
  const calls: MachineCalls = {
    routes,
    correlation: parts.correlation,
    trouble: () => troubleOf(store),
    standing: () => store.replicas.standing(),
    onAborted(source) {
      parts.turnedAway.aborted('recovery', source)
      limits.anonymousBudget.charge(source)
    },
    onRefusal: followRefusals(core, { metrics, alerting, limits }),
    log,
  }
  const listener = await openRecoveryListener(timers, {
    calls,
    identity: recovery.serverIdentity(),
    limits: parts.turnedAway.limits('recovery', { connections: parts.connections, perCaller: null }),
    balancers: parts.balancers,
  })
  recovery.onServerIdentity((identity) => listener.replaceIdentity(identity))
  return { listener }
}
