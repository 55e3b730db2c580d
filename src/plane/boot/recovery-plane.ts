// The part of the plane that machines come back through. It shares with the node plane what callers may cost: a stranger
// is not heard twice as often for knocking at two doors.

import type { Balancers } from '#platform/proxied-server.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { ChannelParts } from '#plane/channel/channel-parts.ts'
import type { SightingJudge } from '#plane/continuity/judge-sighting.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { Core } from '#plane/core/core.ts'
import type { NodeLimits } from './node-limits.ts'
import { recordRefusal } from '#plane/core/record-refusal.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { troubleOf, type Refused } from '#plane/http/http-reply.ts'
import { openRecoveryListener, type RecoveryListener } from '#plane/http/recovery-listener.ts'
import { recoveryRoutes } from '#plane/recovery/recovery-routes.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import type { TurnedAway } from './turned-away.ts'

export type RecoveryPlaneDeps = Core & {
  readonly authority: Authority
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly urls: () => PlaneUrls
  /** Those of the node plane. */
  readonly limits: NodeLimits
  readonly channel: Pick<ChannelParts, 'peerBook' | 'secondHolders'>
  readonly sightingJudge: SightingJudge
  readonly copiedImages: CopiedImages
  readonly correlation: () => string
  readonly turnedAway: TurnedAway
  readonly connections: number
  readonly balancers: Balancers | null
  readonly onRefusal: (refused: Refused) => void
  readonly onRehearsal: (outcome: 'passed' | 'failed') => void
}

export type RecoveryPlane = { readonly listener: RecoveryListener }

export const openRecoveryPlane = async (deps: RecoveryPlaneDeps): Promise<RecoveryPlane> => {
  const { store, feed, clock, random, timers, log, recovery, limits, channel } = deps
  const core: Core = { store, feed, clock, random, timers, log }
  const refusals = {
    store,
    feed,
    clock,
    anonymousBudget: limits.anonymousBudget,
    authenticatedBudget: limits.authenticatedBudget,
  }
  const routes = recoveryRoutes({
    ...core,
    ...limits,
    issuer: deps.authority,
    recovery,
    domainName: deps.domainName,
    urls: deps.urls,
    peerBook: channel.peerBook,
    secondHolders: channel.secondHolders,
    sightingJudge: deps.sightingJudge,
    copiedImages: deps.copiedImages,
    onRehearsal: deps.onRehearsal,
  })
  const listener = await openRecoveryListener({
    routes,
    correlation: deps.correlation,
    timers,
    log,
    identity: recovery.serverIdentity(),
    limits: deps.turnedAway.limits('recovery', { connections: deps.connections, perCaller: null }),
    onAborted(source) {
      deps.turnedAway.aborted('recovery', source)
      limits.anonymousBudget.charge(source)
    },
    balancers: deps.balancers,
    trouble: () => troubleOf(store),
    standing: () => store.replicas.standing(),
    onRefusal(refused) {
      deps.onRefusal(refused)
      recordRefusal(refusals, refused).catch((error: unknown) =>
        log.warn({ err: error }, 'a refusal was not journaled'),
      )
    },
  })
  recovery.onServerIdentity((identity) => listener.replaceIdentity(identity))
  return { listener }
}
