// A plane, from its configuration to its end. Everything real is made here and in foundation/foundation.ts, and nowhere else.

import { cutOffKey } from '#domain/core/cut-off.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { NodeId } from '#domain/core/node.ts'
import { isIP } from '#platform/resolve-name.ts'
import { openLog } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'
import { processName, openFileLimit, musterVersion } from '#platform/this-process.ts'
import { sortableId } from '#platform/random.ts'
import { openAlerting } from '#plane/alerts/alerting.ts'
import { leadSharedKeys } from '#plane/identity/shared-keys.ts'
import { openBalancers } from '#plane/boot/balancers.ts'
import { callPeer } from '#plane/federation/call-peer.ts'
import { publishClaims } from '#plane/federation/publish-claims.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { openClockWarning } from '#plane/foundation/clock-check.ts'
import { nodeUrlOf, type PlaneConfig } from '#plane/config/config.ts'
import { openKeyBook } from '#plane/authn/operator-key-book.ts'
import { raisePutBack } from '#plane/alerts/alert-sources.ts'
import { openFeed, type Feed } from '#plane/core/feed.ts'
import { recoverabilityCounts } from '#plane/core/count-recoverable.ts'
import { recordLosses } from '#plane/continuity/record-loss.ts'
import { openCutOffFiles } from '#plane/cut-off/cut-off-files.ts'
import { barredByPending, forbiddenByPending, openPendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { performCutOff } from '#plane/boot/perform-cut-off.ts'
import { openUnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { asUsual, layFoundation, type Foundation, type LaidFoundation } from '#plane/foundation/foundation.ts'
import { adminKeyFile } from '#plane/foundation/initialise.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openRecoveryAuthority } from '#plane/authority/open-recovery-authority.ts'
import type { Refused } from '#plane/http/http-reply.ts'
import { openMetrics } from '#plane/metrics/open-metrics.ts'
import { startLeading } from '#plane/cluster/leading.ts'
import { byServerName, connectionShares, refuseTakenPorts, urlOf } from '#plane/boot/listen-places.ts'
import { openJournalWatch } from '#plane/journal/journal-watch.ts'
import { openLivedTime } from '#plane/core/lived-time.ts'
import { openNodePlane } from '#plane/boot/node-plane.ts'
import type { OperatorListener } from '#plane/http/operator-listener.ts'
import { openOperatorPlane } from '#plane/boot/operator-plane.ts'
import { soleSocket, takeSocket } from '#plane/foundation/operator-socket.ts'
import { openRecoveryPlane } from '#plane/boot/recovery-plane.ts'
import { notReady, readyBut } from '#plane/boot/readiness.ts'
import { endFirstStart } from '#plane/foundation/first-start.ts'
import { openStatusPlane } from '#plane/boot/status-plane.ts'
import { openTurnedAway } from '#plane/boot/turned-away.ts'
import { startUpkeep, type UpkeepTask } from '#plane/core/upkeep.ts'

export type PlaneReady = {
  readonly nodeUrl: string
  readonly recoveryUrl: string
  readonly operatorUrl: string
  /** Null: nobody is told there whether certificates hold. */
  readonly statusUrl: string | null
  /** Empty: it has none. */
  readonly socketPath: string
  readonly rootFingerprint: string
  readonly domain: string
  readonly dataFolder: string
  readonly firstRun: boolean
  /** The administrator's key is in the data folder; else in that of the plane which made the domain. */
  readonly adminKeyHere: boolean
  readonly warnings: readonly string[]
}

const drainWithinMs = 5000

/** Resolves when `stop` has been asked for and everything acknowledged is on disk. */
export const runPlane = async (
  config: PlaneConfig,
  onReady: (ready: PlaneReady) => void,
  stop: AbortSignal,
): Promise<void> => {
  const log = openLog(config.logLevel, config.replica === null ? 'plane' : `plane ${config.replica}`)
  const beforeFirst = (): Promise<void> => refuseTakenPorts(config)
  const foundation = await layFoundation(config, log, { ...asUsual, beforeFirst })
  try {
    const plane = await openPlane(config, foundation)
    endFirstStart(config.dataFolder)
    onReady(plane.ready)
    const lost = await Promise.race([aborted(stop), storeLost(foundation)])
    log.info('stopping')
    await plane.stop()
    if (lost instanceof Error) throw lost
  } finally {
    await foundation.store.close()
  }
}

const openPlane = async (config: PlaneConfig, laid: LaidFoundation) => {
  const cutOffFiles = openCutOffFiles(config.dataFolder, laid.log)
  const pending = new Map(cutOffFiles.all().map((one) => [cutOffKey(one.order), one]))
  const foundation = { ...laid, store: forbiddenByPending(laid.store, () => pending.values()) }
  const { store, clock, random } = foundation
  const feed = openFeed()
  // Before anything is loaded: what is committed elsewhere meanwhile is then seen twice, and never missed.
  store.onForeignCommit((committed) => feed.publish(committed))
  feed.subscribe('journal witness', ({ entries }) => foundation.keeping.note(entries.map(({ entry }) => entry)))
  const settings = await followSettings(foundation, feed)
  followConfirmations(foundation, feed)
  recordLosses({ ...foundation, feed, planeName: processName() })
  const certificates = {
    domain: settings().name,
    serverNames: { dns: config.serverNames.filter((name) => !isIP(name)), ip: config.serverNames.filter(isIP) },
    serverLifetimeMs: config.serverCertificateLifetimeMs,
  }
  const recovery = await openRecoveryAuthority({ ...foundation, feed, options: certificates })
  const authority = await openAuthority({
    ...foundation,
    feed,
    recovery,
    options: {
      ...certificates,
      issuerKey: config.issuerKey,
      intermediateLifetimeMs: config.intermediateLifetimeMs,
      statusUrl: config.statusUrl,
    },
  })
  const maintain = async (): Promise<void> => {
    const profiles = await store.profiles()
    await authority.maintain(Math.max(0, ...profiles.map(({ value }) => value.certificate.lifetimeMs)))
  }
  await maintain()

  const ports = { node: config.nodeListen.port, recovery: config.recoveryListen.port, status: 0 }
  const urls = (): PlaneUrls => ({
    node: nodeUrlOf(config, ports.node),
    recovery: nodeUrlOf(config, ports.recovery),
  })
  let stopping = false
  const correlation = (): string => sortableId(clock.nowMs(), random)
  const recoverability = recoverabilityCounts(store, clock, foundation.timers)
  const balancers = openBalancers({ ...foundation, onRefused: (why) => metrics.unproxied(why) }, config.proxyFrom)
  const turnedAway = openTurnedAway(
    {
      ...foundation,
      onCut: (listener, reason) => metrics.cut(listener, reason),
      onAborted: (listener) => metrics.aborted(listener),
    },
    config.connectionsPerSource,
  )
  const lived = openLivedTime(foundation)
  const clockWarnings = await openClockWarning(foundation)
  const followed = { lived, feed, settings, correlation, urls, recoverability }
  const parts = { ...foundation, ...followed, authority, recovery, balancers, turnedAway }
  // Not the recovery listener's certificate: whoever takes the plane out of service for that takes the runtime away too.
  // There is an alert for it.
  const unready = (): readonly string[] => (stopping ? ['the plane is stopping'] : [])
  const seen = {
    onRefusal(refused: Refused): void {
      metrics.refused(refused.refusal.code, refused.path)
      alerting.onRefusal(refused)
    },
    onReport: () => metrics.reported(),
    onRehearsal: (outcome: 'passed' | 'failed') => metrics.rehearsed(outcome),
  }
  const connections = connectionShares(openFileLimit())
  const barred = (node: NodeId) => barredByPending(pending, node)
  const nodePlane = await openNodePlane({ ...parts, ...seen, barred, connections: connections.node })
  const recoveryPlane = await openRecoveryPlane({ ...nodePlane.shared, ...seen, connections: connections.recovery })
  const { channels, receipts, denyList } = nodePlane
  const { sessions, peerProofs } = nodePlane.shared
  const epochsHere = (node: NodeId) => sessions.of(node).map(({ principal }) => principal.epoch)
  const cutOffs = openPendingCutOffs({ ...parts, denyList, files: cutOffFiles, epochsHere }, pending)
  cutOffs.enforce()
  const alerts = await openUnresolvedAlerts(store, feed)
  const domainName = (): string => settings().name
  await raisePutBack({ ...foundation, feed, domainName }, foundation.keeping.putBack)
  const keyBook = await openKeyBook({ ...foundation, feed, alerts })
  const journalWatch = openJournalWatch({ ...foundation, feed, alerts, keyBook, domainName })
  const metrics = openMetrics({
    ...parts,
    channels,
    alerts,
    journalWatch,
    admissionQueue: () => nodePlane.admission.waiting(),
    waitingDeliveries: () => alerting.waitingDeliveries(),
    notReady: () => notReady({ store, authority, clock, besides: unready }),
  })
  const alerting = openAlerting({
    ...parts,
    alerts,
    servers: () => ({ node: authority.serverIdentity(), recovery: recovery.serverIdentity() }),
    webhook: config.alertWebhook,
    clockToleranceMs: config.clockToleranceMs,
    onDelivery: (outcome) => metrics.delivered(outcome),
  })
  const statusPlane = openStatusPlane({ ...parts, statusUrl: config.statusUrl, measures: metrics.status })
  const stopMachineDoors = (withinMs: number): Promise<unknown> =>
    Promise.all([nodePlane, recoveryPlane, statusPlane].map(({ listener }) => listener.stop(withinMs)))

  const shared = config.replica !== null
  // Before operators can call. One that cannot be written now is adopted when it is presented.
  await keyBook
    .lookAtAll()
    .catch((error: unknown) => foundation.log.warn({ err: error }, 'the operator keys could not all be looked at'))
  const socket = (store.sealedKeys === null ? soleSocket : takeSocket)(config.dataFolder)
  const openDoors = async (): Promise<OperatorListener> => {
    ports.node = await nodePlane.listener.listen({ ...config.nodeListen, shared })
    ports.recovery = await recoveryPlane.listener.listen({ ...config.recoveryListen, shared })
    if (config.statusListen !== null) {
      ports.status = await statusPlane.listener.listen({ ...config.statusListen, shared })
    }
    return openOperatorPlane(
      {
        ...parts,
        nodeUrl: () => urls().node,
        channels,
        keyBook,
        journalWatch,
        alerts,
        peers: peerProofs,
        receipts,
        cutOffs,
        metrics,
        revocationLists: statusPlane.lists,
        version: musterVersion,
        unready,
        clockWarnings,
      },
      {
        socket: socket.file,
        http: config.operatorTls ? null : { ...config.operatorListen, shared },
        tls: config.operatorTls ? { ...config.operatorListen, shared } : null,
      },
    )
  }
  const operators = await openDoors().catch(async (error: unknown) => {
    // Left open, the others would keep a process alive that nobody can operate.
    await stopMachineDoors(0)
    await alerting.stop()
    metrics.close()
    socket.release()
    throw error
  })
  const upkeep: readonly UpkeepTask[] = [
    ...nodePlane.upkeep,
    ...statusPlane.upkeep,
    { name: 'operator keys', where: 'leader', everyMs: operatorKeysEveryMs, run: () => keyBook.lookAtAll() },
    {
      name: 'pending cut-offs',
      where: 'each',
      everyMs: 1000,
      run: () => cutOffs.repeat((order) => performCutOff({ ...parts, channels, receipts, peers: peerProofs }, order)),
    },
    { name: 'authority', where: 'each', everyMs: authorityEveryMs, run: maintain },
    // Apart from the other: trouble of one trust must not let the other grow old.
    { name: 'recovery authority', where: 'each', everyMs: authorityEveryMs, run: () => recovery.maintain() },
  ]
  const tasksOf = (where: UpkeepTask['where']) => upkeep.filter((task) => task.where === where)
  const endUpkeep = startUpkeep(foundation, tasksOf('each'))
  const leading = startLeading(foundation, (asLeader) => {
    const endSweeps = startUpkeep({ ...foundation, store: asLeader }, tasksOf('leader'))
    const alertsLed = alerting.lead(asLeader)
    const keysLed = leadSharedKeys({ ...parts, alerts, store: asLeader })
    const journalLed = journalWatch.lead()
    const claimsLed = publishClaims({
      ...parts,
      store: asLeader,
      domainName: settings().name,
      sign: (bytes) => recovery.signStatement(bytes),
      call: callPeer,
    })
    return {
      async stop() {
        endSweeps()
        await journalLed.stop()
        await alertsLed.stop()
        await keysLed.stop()
        await claimsLed.stop()
      },
    }
  })

  const { rootKeyFile } = foundation
  const ready: PlaneReady = {
    nodeUrl: urls().node,
    recoveryUrl: urls().recovery,
    operatorUrl: operators.tlsUrl === null ? (operators.httpUrl ?? '') : byServerName(config, operators.tlsUrl),
    statusUrl: config.statusListen === null ? null : urlOf(config.statusListen.host, ports.status),
    socketPath: operators.socket ?? '',
    rootFingerprint: authority.rootFingerprint(),
    domain: settings().name,
    dataFolder: config.dataFolder,
    firstRun: foundation.firstRun,
    adminKeyHere: pathExists(adminKeyFile(config.dataFolder)),
    warnings: [
      ...readyBut(settings(), [], store),
      ...clockWarnings(),
      ...authority.view().warnings,
      ...(rootKeyFile === null ? [] : [`the root key is in ${rootKeyFile}: take it offline now`]),
    ],
  }
  return {
    ready,
    async stop() {
      stopping = true
      endUpkeep()
      nodePlane.endChannels()
      await Promise.all([stopMachineDoors(drainWithinMs), operators.stop(drainWithinMs)])
      await leading.stop()
      await alerting.stop()
      metrics.close()
      socket.release()
    },
  }
}

/** Resolves when this process may not go on with its store: another one has to read it anew. */
const storeLost = ({ store }: Foundation): Promise<Error> => new Promise((resolve) => store.onLost(resolve))

/** A row that nobody presents is found by this; there are few of them. */
const operatorKeysEveryMs = 30_000

/** Cheap when nothing is due. */
const authorityEveryMs = 5000

/** On any plane. A domain that is in doubt has not been confirmed, whatever its lineage. */
const followConfirmations = ({ witness }: Foundation, feed: Feed): void => {
  feed.subscribe('store confirmations', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'domain') continue
      const { lineage, doubt } = write.value.continuity
      if (doubt === null) witness.confirmed(lineage)
    }
  })
}

/** The domain's settings as last committed, without a read on every use. */
const followSettings = async ({ store }: Foundation, feed: Feed): Promise<() => DomainSettings> => {
  let heard: DomainSettings | null = null
  feed.subscribe('domain settings', ({ writes }) => {
    for (const write of writes) if (write.put === 'domain') heard = write.value
  })
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the store has no domain')
  return () => heard ?? row.value
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
