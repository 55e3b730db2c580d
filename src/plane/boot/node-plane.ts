// The part of the plane that nodes talk to, put together: authentication, admission, channels, liveness.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import { troubleOf, type Refused } from '#plane/http/http-reply.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openNodeAuthn } from '#plane/authn/node-certificate.ts'
import { openChannelParts } from '#plane/channel/channel-parts.ts'
import { openChannelServer } from '#plane/channel/channel-server.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { sweepSessions } from '#plane/channel/cut-sessions.ts'
import { raiseOverdue } from '#plane/liveness/lapse-nodes.ts'
import { openSightings, sightingsEveryMs } from '#plane/continuity/sightings.ts'
import type { Feed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { openSightingJudge } from '#plane/continuity/judge-sighting.ts'
import { openNodePace } from '#plane/limits/node-pace.ts'
import { openReceipts } from '#plane/revocation/receipts.ts'
import { recordCounted, recordRefusal } from '#plane/core/record-refusal.ts'
import { openStrangersBudget, sharedLimits } from '#plane/limits/strangers-budget.ts'
import type { Foundation } from '#plane/foundation/foundation.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { bundleRoutes, type BundleRouteDeps } from '#plane/ca/ca-routes.ts'
import { enrollRoutes, type EnrollRouteDeps } from '#plane/enrollment/enroll-routes.ts'
import { claimRoutes } from '#plane/federation/peer-domain-routes.ts'
import type { ReceiveClaimsDeps } from '#plane/federation/take-claims.ts'
import type { Route } from '#plane/http/route.ts'
import {
  challengeLimits,
  challengeRoutes,
  identityRoutes,
  type ChallengeRouteDeps,
  type IdentityRouteDeps,
} from '#plane/identity/identity-routes.ts'
import { openNodeListener } from './node-listener.ts'
import { mostBehindMs } from '#plane/store/contract/replicas.ts'
import type { LivedTime } from '#plane/core/lived-time.ts'
import type { TurnedAway } from './turned-away.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'

export type NodePlaneDeps = Foundation & {
  readonly feed: Feed
  readonly authority: Authority
  readonly recovery: RecoveryAuthority
  readonly urls: () => PlaneUrls
  readonly turnedAway: TurnedAway
  readonly connections: number
  readonly balancers: Balancers | null
  readonly correlation: () => string
  readonly settings: () => DomainSettings
  readonly onRefusal: (refused: Refused) => void
  readonly onReport: () => void
  readonly lived: LivedTime
  /** Null: no order that waits for the store keeps this node out. */
  readonly barred: (node: NodeId) => Refusal | null
}

export type NodeRouteDeps = EnrollRouteDeps &
  ChallengeRouteDeps &
  IdentityRouteDeps &
  ReceiveClaimsDeps &
  BundleRouteDeps

/** What machines may ask of the plane. The order is that of the API's description. */
export const nodeRoutes = (deps: NodeRouteDeps): readonly Route[] => [
  ...enrollRoutes(deps),
  ...challengeRoutes(deps),
  ...identityRoutes(deps),
  ...claimRoutes(deps),
  ...bundleRoutes(deps),
]

/** An agent holds one channel and makes a call now and then. A stolen certificate must not take all connections. */
const connectionsPerNode = 32

/** Enrollments in progress at once; the rest is told when to come back. */
const admissionCapacity = 1024
/** What a restart loses of the lived time, at most. */
const livedEveryMs = 300_000

export const openNodePlane = async (deps: NodePlaneDeps) => {
  const { store, feed, clock, timers, log, authority, settings, lived } = deps
  const denyList = await openDenyList(store, feed)
  const strangers = openStrangersBudget(clock, () => {
    const { strangersPerMinute: perMinute, strangersPerMinutePerSource: perMinutePerSource } = settings()
    return sharedLimits({ perMinute, perMinutePerSource }, store.replicas.count())
  })
  // Callers who have proved who they are share what strangers have, whatever address a gateway gives all of them.
  const acquaintances = openStrangersBudget(clock, () => {
    const { strangersPerMinute: perMinute } = settings()
    return sharedLimits({ perMinute, perMinutePerSource: perMinute }, store.replicas.count())
  })
  // A balancer may send all of one site to one replica: only what all callers cost is shared out.
  const challenges = openStrangersBudget(clock, () => ({
    ...sharedLimits(challengeLimits, store.replicas.count()),
    perMinutePerSource: challengeLimits.perMinutePerSource,
  }))
  const admission = openAdmissionQueue(clock, admissionCapacity)
  const pace = openNodePace(clock, () => store.replicas.count())
  const parts = await openChannelParts({ ...deps, issuer: authority })
  const sightingJudge = await openSightingJudge(deps)
  // A shared database may lose, in a failover, what it showed last.
  const certainAfterMs = store.sealedKeys === null ? 0 : mostBehindMs
  const sightings = openSightings({ ...deps, ...parts, strangers, acquaintances, sightingJudge, certainAfterMs })
  const shared = {
    ...deps,
    ...parts,
    issuer: authority,
    strangers,
    acquaintances,
    challenges,
    admission,
    pace,
    domainName: settings().name,
    sightingJudge,
    sightings,
  }
  const { sessions, channels } = parts
  const receipts = openReceipts({ ...deps, channels, peers: parts.peerProofs })

  const listener = await openNodeListener({
    routes: nodeRoutes(shared),
    authn: openNodeAuthn({ ...shared, denyList }),
    channels: openChannelServer({ ...shared, denyList }),
    correlation: deps.correlation,
    timers,
    log,
    identity: authority.serverIdentity(),
    roots: authority.roots(),
    limits: deps.turnedAway.limits('node', { connections: deps.connections, perCaller: connectionsPerNode }),
    onAborted(source, principal) {
      deps.turnedAway.aborted('node', source)
      ;(principal?.kind === 'node' ? acquaintances : strangers).charge(source)
    },
    balancers: deps.balancers,
    trouble: () => troubleOf(store),
    standing: () => store.replicas.standing(),
    withdrawn: (principal) => (principal.kind === 'node' ? denyList.refusalOf(principal) : null),
    onRefusal(refused) {
      deps.onRefusal(refused)
      recordRefusal(shared, refused).catch((error: unknown) => log.warn({ err: error }, 'a refusal was not journaled'))
    },
  })
  authority.onServerIdentity((identity) => listener.replaceIdentity(identity, authority.roots()))

  const upkeep: UpkeepTask[] = [
    { name: 'channels', where: 'each', everyMs: 1000, run: () => sweepSessions(sessions, clock) },
    { name: 'receipts', where: 'leader', everyMs: 1000, run: (asLeader) => receipts.goOn(asLeader) },
    { name: 'lapse', where: 'leader', everyMs: 1000, run: (asLeader) => parts.sweepAbsent(asLeader) },
    {
      name: 'overdue',
      where: 'leader',
      everyMs: 30_000,
      run: (asLeader) => raiseOverdue({ ...shared, store: asLeader }),
    },
    { name: 'sightings', where: 'each', everyMs: sightingsEveryMs, run: () => sightings.look() },
    { name: 'counted refusals', where: 'each', everyMs: 10_000, run: () => recordCounted(shared) },
    {
      name: 'deny-list',
      where: 'each',
      everyMs: 3_600_000,
      run: async () => denyList.prune(await lived.nowMs()),
    },
    {
      name: 'forget',
      where: 'leader',
      everyMs: 3_600_000,
      run: async (asLeader) => {
        await asLeader.forget(await lived.nowMs())
      },
    },
    { name: 'lived time', where: 'leader', everyMs: livedEveryMs, run: (asLeader) => lived.add(asLeader) },
  ]
  const endChannels = (): void => sessions.close('PLANE_STOPPING', 'the plane is restarting')
  return { listener, channels, receipts, admission, upkeep, endChannels, shared, denyList }
}
