// The part of the plane that nodes talk to, put together: authentication, admission, channels, liveness.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { NodePrincipal, Principal, WorkerPrincipal } from '#domain/core/principal.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { VerifySignature } from '#pki/signature.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import { troubleOf } from '#plane/http/http-reply.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { openDenyList } from '#plane/authn/deny-list.ts'
import { openTokenAuthn } from '#plane/authn/enrollment-token.ts'
import { openNodeAuthn } from '#plane/authn/node-certificate.ts'
import { openChannelParts } from '#plane/channel/channel-parts.ts'
import { openChannelServer } from '#plane/channel/channel-server.ts'
import { openTaskSessions } from '#plane/channel/task-sessions.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { sweepSessions } from '#plane/channel/cut-sessions.ts'
import { raiseOverdue } from '#plane/liveness/lapse-nodes.ts'
import { openSightings, sightingsEveryMs } from '#plane/continuity/sightings.ts'
import { openSightingJudge } from '#plane/continuity/judge-sighting.ts'
import { openReceipts } from '#plane/revocation/receipts.ts'
import { recordCounted } from '#plane/core/record-refusal.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { WorkersAuthority } from '#plane/authority/workers-authority.ts'
import { followListedOutputs } from '#plane/programs/end-unlisted.ts'
import { listLengthSource } from '#plane/programs/list-length.ts'
import { openProgramLists } from '#plane/programs/program-lists.ts'
import { openKeySets } from '#plane/workers/key-sets.ts'
import { openWorkerIssuers } from '#plane/workers/worker-issuers.ts'
import { openPollSession } from '#plane/channel/open-poll.ts'
import { openTasks } from '#plane/tasks/open-tasks.ts'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import { openTaskSweep } from '#plane/tasks/sweep-tasks.ts'
import { openSteadyTime } from '#plane/core/steady-time.ts'
import { adoptOverlays } from '#plane/fleet/adopt-overlays.ts'
import { openTaskSigners } from '#plane/tasks/task-signers.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import type { NewKeyPlace } from '#plane/keys/key-reference.ts'
import { openAgentFiles } from '#plane/enrollment/agent-files.ts'
import { agentDownload, openDownloads } from '#plane/files/downloads.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openNodeLimits } from './node-limits.ts'
import { openNodeListener } from './node-listener.ts'
import { mostBehindMs } from '#plane/store/contract/replicas.ts'
import type { LivedTime } from '#plane/core/lived-time.ts'
import type { TurnedAway } from './turned-away.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import type { Issuance } from '#plane/issuers/open-issuance.ts'
import { withOutsideLeaves } from '#plane/issuers/outside-book.ts'
import type { MachineCalls } from '#plane/http/http-app.ts'
import { openTaskFiles } from '#plane/tasks/task-files.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { Metrics } from '#plane/metrics/open-metrics.ts'
import type { Alerting } from '#plane/alerts/alerting.ts'
import { followRefusals } from './machine-refusals.ts'
import { nodeRoutes } from './node-routes.ts'

export type NodeServerParts = {
  readonly custody: KeyCustody
  readonly taskSignerKeyPlace: NewKeyPlace | null
  readonly authority: Authority
  readonly issuance: Issuance
  readonly verifyProof: VerifySignature
  readonly recovery: RecoveryAuthority
  readonly programs: ProgramsAuthority
  readonly workers: WorkersAuthority
  readonly urls: () => PlaneUrls
  readonly turnedAway: TurnedAway
  readonly connections: number
  readonly tlsThreads: number
  readonly balancers: Balancers | null
  readonly correlation: () => string
  readonly settings: () => DomainSettings
  readonly handedOut: PlaneConfig['handedOut']
  readonly metrics: Pick<Metrics, 'refused' | 'reported' | 'agents' | 'agentSent'>
  readonly alerting: Pick<Alerting, 'onRefusal' | 'watch'>
  readonly lived: LivedTime
  /** Null: no order that waits for the store keeps this node, or this worker, out. */
  readonly barred: (node: NodeId) => Refusal | null
  readonly workerBarred: (worker: string) => Refusal | null
}

/** An agent holds one channel and makes a call now and then. A stolen certificate must not take all connections. */
const connectionsPerNode = 32
/** Looked at that often; a list is made when it is due or something was denied. */
const programListsEveryMs = 5000
const servedFilesEveryMs = 30_000
const workersAuthorityEveryMs = 10_000
/** To all machines together. Beside a boot storm it costs at most a tenth of the storm (npm run bench downloads). */
const agentBytesPerSecond = 16 * 1024 * 1024
/** What a restart loses of the lived time, at most. */
const livedEveryMs = 300_000

export const openNodeServer = async (core: Core, parts: NodeServerParts) => {
  const { store, feed, clock, timers, log } = core
  const { authority, issuance, recovery, programs, workers, settings, lived, urls, metrics, alerting } = parts
  const domainName = settings().name
  const limits = openNodeLimits(core, settings)
  const beforeFirst = (): Promise<void> => adoptOverlays(core)
  const { custody, taskSignerKeyPlace: keyPlace } = parts
  const taskSigners = await openTaskSigners(core, { custody, keyPlace, settings, beforeFirst })
  const denyList = await openDenyList(store, feed)
  const channel = await openChannelParts(core, {
    issuer: issuance.issuer,
    urls,
    writeLimit: limits.writeLimit,
    agentFigures: metrics.agents,
    onReport: () => metrics.reported(),
  })
  const sightingJudge = await openSightingJudge(core, { recovery, settings })
  const sightings = openSightings(core, {
    budgets: limits,
    recovery,
    settings,
    sightingJudge,
    sessions: channel.sessions,
    gate: channel.gate,
    // A shared database may lose, in a failover, what it showed last.
    certainAfterMs: store.sealedKeys === null ? 0 : mostBehindMs,
  })
  const copiedImages = openCopiedImages(core)
  const receipts = openReceipts(core, { channels: channel.channels, peers: channel.peerProofs })

  const outsideRoots = () => issuance.programRoots.current()
  const programLists = openProgramLists(core, { programs, outsideRoots, steadyMs: openSteadyTime(clock), settings })
  programLists.onNewer((newer) => {
    for (const session of channel.sessions.all())
      if (session.takesOutputs) session.send({ type: 'program_lists', body: newer })
  })
  alerting.watch(listLengthSource(programLists, domainName))
  const unlistedOutputs = followListedOutputs(core)
  const workerIssuers = await openWorkerIssuers(core)
  const keySets = openKeySets(core)

  const agentFiles = openAgentFiles(parts.handedOut.agents, log)
  const taskFiles = openTaskFiles(parts.handedOut.taskFiles, log)
  const downloads = openDownloads(core, {
    replicas: () => store.replicas.count(),
    bytesPerSecond: agentBytesPerSecond,
    onEnd: (outcome, kind) => (kind === agentDownload ? metrics.agentSent(outcome) : undefined),
  })
  const tasks = openTasks(core, {
    domainName,
    signer: taskSigners,
    sessions: channel.sessions,
    openPoll: (opening) => openPollSession(core, { channel, denyList }, opening),
  })
  const taskSessions = openTaskSessions(channel.sessions, tasks.dispatcher)
  taskSigners.onNumber((number) => taskSessions.announce(number))
  const routes = nodeRoutes(core, {
    issuer: issuance.issuer,
    orders: issuance.orders,
    verifyProof: parts.verifyProof,
    recovery,
    programs: withOutsideLeaves(programs, issuance.book),
    programLists,
    outsideRoots,
    taskSigners,
    domainName,
    urls,
    limits,
    channel,
    copiedImages,
    agents: { files: agentFiles, downloads },
    workers: withOutsideLeaves(workers, issuance.book),
    workerIssuers,
    keySets,
    taskPolls: tasks.polls,
    taskFiles: { store, files: taskFiles, downloads },
  })
  const calls: MachineCalls = {
    routes,
    correlation: parts.correlation,
    trouble: () => troubleOf(store),
    standing: () => store.replicas.standing(),
    withdrawn: (principal) => (isProven(principal) ? denyList.refusalOf(principal) : null),
    onAborted(source, principal) {
      parts.turnedAway.aborted('node', source)
      ;(isProven(principal) ? limits.authenticatedBudget : limits.anonymousBudget).charge(source)
    },
    onRefusal: followRefusals(core, { metrics, alerting, limits }),
    log,
  }
  const listener = await openNodeListener(timers, {
    calls,
    authn: openNodeAuthn(core, {
      settings,
      denyList,
      retryTimes: channel.retryTimes,
      holdOff: channel.holdOff,
      secondHolders: channel.secondHolders,
      barred: parts.barred,
      workerBarred: parts.workerBarred,
      workers,
      isOutside: (issuer) => issuance.book.find(issuer) !== null,
      issuerIdOf: (subjectKeyId) => issuance.book.idOf(subjectKeyId),
    }),
    tokenAuthn: openTokenAuthn(core, { settings, anonymousBudget: limits.anonymousBudget }),
    channels: openChannelServer(core, { channel, sightings, tasks: taskSessions, denyList, urls }),
    identity: authority.serverIdentity(),
    roots: authority.roots(),
    limits: parts.turnedAway.limits('node', { connections: parts.connections, perCaller: connectionsPerNode }),
    threads: parts.tlsThreads,
    balancers: parts.balancers,
  })
  authority.onServerIdentity((identity) => listener.replaceIdentity(identity, authority.roots()))

  const upkeep: UpkeepTask[] = [
    { name: 'channels', where: 'each', everyMs: 1000, run: () => sweepSessions(channel.sessions, clock) },
    { name: 'receipts', where: 'leader', everyMs: 1000, run: (asLeader) => receipts.resumeOpen(asLeader) },
    { name: 'lapse', where: 'leader', everyMs: 1000, run: (asLeader) => channel.sweepAbsent(asLeader) },
    {
      name: 'overdue',
      where: 'leader',
      everyMs: 30_000,
      run: (asLeader) => raiseOverdue(withStore(core, asLeader), timers),
    },
    { name: 'workers authority', where: 'each', everyMs: workersAuthorityEveryMs, run: () => workers.maintain() },
    { name: 'program lists', where: 'each', everyMs: programListsEveryMs, run: () => programLists.settle() },
    issuance.upkeep,
    issuance.ownUpkeep,
    issuance.programRoots.upkeep,
    issuance.endsWithdrawn,
    unlistedOutputs,
    taskSigners.upkeep,
    openTaskSweep(core),
    tasks.dispatcher.upkeep,
    { name: 'agents to hand out', where: 'each', everyMs: servedFilesEveryMs, run: () => agentFiles.look() },
    { name: 'task files', where: 'each', everyMs: servedFilesEveryMs, run: () => taskFiles.look() },
    openRolloutUpkeep(core),
    { name: 'sightings', where: 'each', everyMs: sightingsEveryMs, run: () => sightings.look() },
    { name: 'counted refusals', where: 'each', everyMs: 10_000, run: () => recordCounted(core, limits) },
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
  const endChannels = (): void => channel.sessions.close('PLANE_STOPPING', 'the plane is restarting')
  return {
    listener,
    channel,
    receipts,
    limits,
    sightingJudge,
    copiedImages,
    agentFiles,
    denyList,
    programLists,
    taskSigners,
    workerIssuers,
    keySets,
    upkeep,
    endChannels,
  }
}

/** By a certificate of ours. */
const isProven = (principal: Principal | null): principal is NodePrincipal | WorkerPrincipal =>
  principal !== null && (principal.kind === 'node' || principal.kind === 'worker')
