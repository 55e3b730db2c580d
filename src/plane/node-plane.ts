// The part of the plane that nodes talk to, put together: authentication, admission, channels, liveness.

import type { DomainSettings } from '#domain/domain-settings.ts'
import type { NodeId } from '#domain/node.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import type { Refused } from './listeners/http-reply.ts'
import { openDenyList } from './authn/deny-list.ts'
import { openNodeAuthn } from './authn/node-certificate.ts'
import { openChannelServer } from './channels/channel-server.ts'
import type { PlaneUrls } from './channels/configuration.ts'
import { sweepSessions } from './channels/cut-sessions.ts'
import { openAwaitReturn, openFindOtherHolder } from './channels/find-other-holder.ts'
import { followCommits } from './channels/follow-commits.ts'
import { openLastHolders } from './channels/last-holders.ts'
import { awaitEverybody, lapseAbsent, raiseOverdue } from './channels/lapse-nodes.ts'
import { openPresence } from './channels/presence.ts'
import { openProbe } from './channels/probe.ts'
import { openSessionRegistry } from './channels/session-registry.ts'
import type { Session } from './channels/session.ts'
import { openUpdates } from './channels/updates.ts'
import type { Feed } from './feed/feed.ts'
import type { OpenChannels, OpenSession } from './flows/open-channels.ts'
import { openAdmissionQueue } from './flows/admission-queue.ts'
import { openHoldOff } from './flows/hold-off.ts'
import { openNodePace } from './flows/node-pace.ts'
import { openReportIntake } from './flows/report-intake.ts'
import { recordCounted, recordRefusal } from './flows/record-refusal.ts'
import { openStrangersBudget } from './flows/strangers-budget.ts'
import type { Foundation } from './foundation.ts'
import type { Authority } from './issuer/authority.ts'
import type { RecoveryAuthority } from './issuer/recovery-authority.ts'
import { openNodeListener } from './listeners/node-listener.ts'
import { nodeRoutes } from './listeners/node-routes.ts'
import { openSteadyTime } from './steady-time.ts'
import type { UpkeepTask } from './upkeep.ts'

export type NodePlaneDeps = Foundation & {
  readonly feed: Feed
  readonly authority: Authority
  readonly recovery: RecoveryAuthority
  readonly urls: () => PlaneUrls
  readonly connections: number
  readonly balancers: Balancers | null
  readonly correlation: () => string
  readonly settings: () => DomainSettings
  readonly onRefusal: (refused: Refused) => void
  readonly onReport: () => void
}

/** Enrollments in progress at once; the rest is told when to come back. */
const admissionCapacity = 1024

export const openNodePlane = async (deps: NodePlaneDeps) => {
  const { store, feed, clock, timers, log, authority, settings } = deps
  const sessions = openSessionRegistry(clock)
  const presence = openPresence(clock)
  const denyList = await openDenyList(store, feed)
  const budget = () =>
    openStrangersBudget(clock, () => {
      const { strangersPerMinute: perMinute, strangersPerMinutePerSource: perMinutePerSource } = settings()
      return { perMinute, perMinutePerSource }
    })
  const strangers = budget()
  const acquaintances = budget()
  const admission = openAdmissionQueue(clock, admissionCapacity)
  const holdOff = openHoldOff()
  const pace = openNodePace(clock)
  const updates = openUpdates({ ...deps, issuer: authority, sessions })
  const shared = {
    ...deps,
    issuer: authority,
    sessions,
    presence,
    updates,
    holdOff,
    strangers,
    acquaintances,
    admission,
    pace,
    domainName: settings().name,
    hasChannel: (node: NodeId, instance: string) =>
      sessions.of(node).some(({ alive, evidence }) => alive && evidence?.instance === instance),
    findOtherHolder: openFindOtherHolder({ sessions, clock, timers }),
    awaitReturn: openAwaitReturn({ presence, timers }),
    lastHolders: openLastHolders(store),
    reports: openReportIntake({ store, log, onTaken: deps.onReport }),
  }

  feed.subscribe(followCommits(shared))
  sessions.onAbsent((node) => presence.lastHere(node))
  await awaitEverybody(shared)

  const routes = nodeRoutes({ ...shared, probe: openProbe(shared) })
  const listener = await openNodeListener({
    routes,
    authn: openNodeAuthn({ ...shared, denyList }),
    channels: openChannelServer({ ...shared, denyList }),
    correlation: deps.correlation,
    timers,
    log,
    identity: authority.serverIdentity(),
    roots: authority.roots(),
    connections: deps.connections,
    balancers: deps.balancers,
    trouble: () => store.trouble(),
    onRefusal(refused) {
      deps.onRefusal(refused)
      recordRefusal(shared, refused).catch((error: unknown) => log.warn({ err: error }, 'a refusal was not journaled'))
    },
  })
  authority.onServerIdentity((identity) => listener.replaceIdentity(identity, authority.roots()))

  const steadyMs = openSteadyTime(clock)
  const upkeep: UpkeepTask[] = [
    { name: 'channels', where: 'each', everyMs: 1000, run: () => sweepSessions(sessions, clock) },
    { name: 'lapse', where: 'leader', everyMs: 1000, run: (asLeader) => lapseAbsent({ ...shared, store: asLeader }) },
    {
      name: 'overdue',
      where: 'leader',
      everyMs: 30_000,
      run: (asLeader) => raiseOverdue({ ...shared, store: asLeader }),
    },
    { name: 'counted refusals', where: 'each', everyMs: 10_000, run: () => recordCounted(shared) },
    {
      name: 'deny-list',
      where: 'each',
      everyMs: 3_600_000,
      run: () => denyList.prune(steadyMs()),
    },
    {
      name: 'forget',
      where: 'leader',
      everyMs: 3_600_000,
      run: async (asLeader) => {
        await asLeader.forget(steadyMs())
      },
    },
  ]
  const channels: OpenChannels = {
    openSessions: (node) => sessions.of(node).map(describeSession),
    count: () => sessions.count(),
    heldOff: (node, run) => holdOff.during(node, run),
  }
  const endChannels = (): void => sessions.close('PLANE_STOPPING', 'the plane is restarting')
  return { routes, listener, channels, admission, upkeep, endChannels, shared }
}

const describeSession = ({ number, openedAtMs: sinceMs, principal }: Session): OpenSession => ({
  number,
  sinceMs,
  serial: principal.proof.serial,
})
