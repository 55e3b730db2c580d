// A plane, from its configuration to its end. Everything real is made here and in foundation/foundation.ts, and nowhere else.

import { cutOffKey } from '#domain/core/cut-off.ts'
import { openLog } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'
import { processName, openFileLimit, musterVersion } from '#platform/this-process.ts'
import { sortableId } from '#platform/random.ts'
import { issuerKinds } from '#plane/issuers/issuer-kinds.ts'
import { openIssuers } from '#plane/issuers/open-issuers.ts'
import { openAlerting } from '#plane/alerts/alerting.ts'
import { openAuthorities } from '#plane/boot/open-authorities.ts'
import { openBalancers } from '#plane/boot/balancers.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { openClockWarning } from '#plane/foundation/clock-check.ts'
import { listenWarning, namesConfig, nodeUrlOf, type PlaneConfig } from '#plane/config/config.ts'
import { openKeyBook } from '#plane/authn/operator-key-book.ts'
import { raisePutBack } from '#plane/alerts/alert-sources.ts'
import type { Core } from '#plane/core/core.ts'
import { followSettings } from '#plane/core/domain-settings-row.ts'
import { startBackground } from '#plane/boot/background.ts'
import { openFeed } from '#plane/core/feed.ts'
import { recoverabilityCounts } from '#plane/core/count-recoverable.ts'
import { followConfirmations, recordLosses } from '#plane/continuity/record-loss.ts'
import { openCutOffFiles } from '#plane/cut-off/cut-off-files.ts'
import { barredByPending, forbiddenByPending, workerBarredByPending } from '#plane/cut-off/barred-by-pending.ts'
import { openPendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { performCutOff } from '#plane/boot/perform-cut-off.ts'
import { openUnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { asUsual, layFoundation, type LaidFoundation } from '#plane/foundation/foundation.ts'
import { adminKeyFile } from '#plane/foundation/initialise.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import { openMetrics } from '#plane/metrics/open-metrics.ts'
import { byServerName, connectionShares, refuseTakenPorts, urlOf } from '#plane/boot/listen-places.ts'
import { openLoopLoad } from '#platform/event-loop.ts'
import { openJournalWatch } from '#plane/journal/journal-watch.ts'
import { openLivedTime } from '#plane/core/lived-time.ts'
import { openNodeServer } from '#plane/boot/node-server.ts'
import { openProofVerifier } from '#plane/boot/proof-verifier.ts'
import type { OperatorListener } from '#plane/http/operator-listener.ts'
import { openOperatorServer } from '#plane/boot/operator-server.ts'
import { soleSocket, takeSocket } from '#plane/foundation/operator-socket.ts'
import { openRecoveryServer } from '#plane/boot/recovery-server.ts'
import { keptWarning, notReady, readyBut } from '#plane/boot/readiness.ts'
import { refuseWithoutCa } from '#plane/foundation/first-ceremony.ts'
import { refuseWithoutModule } from '#plane/foundation/token-module.ts'
import { endFirstStart } from '#plane/foundation/first-start.ts'
import { openEndedRights } from '#plane/seals/ended-rights.ts'
import { openForgedRows } from '#plane/alerts/forged-rows.ts'
import { sealedStore } from '#plane/seals/sealed-store.ts'
import { openPlaneNames } from '#plane/settings/plane-names.ts'
import { openStatusServer } from '#plane/boot/status-server.ts'
import { openTurnedAway } from '#plane/boot/turned-away.ts'

export type PlaneReady = {
  readonly nodeUrl: string
  readonly recoveryUrl: string
  readonly operatorUrl: string
  /** Null: there is no status listener. */
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
  const log = openLog(config, config.replica === null ? 'plane' : `plane ${config.replica}`)
  const beforeFirst = (): Promise<void> => refuseTakenPorts(config)
  const foundation = await layFoundation(config, log, { ...asUsual, beforeFirst })
  try {
    await refuseWithoutCa(config, foundation)
    await refuseWithoutModule(config, foundation)
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
  const { clock, random, timers, log, custody, keySeal, rowSeal, witness, keeping, rootKeyFile } = laid
  const feed = openFeed()
  const ended = await openEndedRights({ store: laid.store, feed, clock })
  const onForged = openForgedRows(log, clock, () => core)
  const genuine = sealedStore(laid.store, { rowSeal, keySeal, ended, onForged })
  const store = forbiddenByPending(genuine, () => pending.values())
  const core: Core = { store, feed, clock, random, timers, log }
  // Before anything is loaded: what is committed elsewhere meanwhile is then seen twice, and never missed.
  store.onForeignCommit((committed) => feed.publish(committed))
  feed.subscribe('journal witness', ({ entries }) => keeping.note(entries.map(({ entry }) => entry)))
  const settings = await followSettings(core)
  followConfirmations(witness, feed)
  recordLosses(core, witness, processName())
  const names = await openServedNames(core, namesConfig(config))
  const issuers = await openIssuers(core, { custody, kinds: issuerKinds(core, settings().name) })
  const authorities = await openAuthorities(core, config, {
    ...{ custody, names, domain: settings().name },
    door: issuers.outside,
    known: issuers.known,
  })
  const { recovery, programs, workers, authority, issuance, maintainAuthority } = authorities

  const ports = { node: config.nodeListen.port, recovery: config.recoveryListen.port, status: 0 }
  const urls = (): PlaneUrls => ({
    node: nodeUrlOf(config, ports.node),
    recovery: nodeUrlOf(config, ports.recovery),
    returnedAtMs: names.returnedAtMs(),
    // Not while replicas of the release before run behind the same addresses: theirs do not carry it.
    marked: authority.serverIdentity().marked && recovery.serverIdentity().marked && store.unfinishedUpgrade() === null,
  })
  const planeNames = openPlaneNames(core, { names, urls })
  let stopping = false
  const correlation = (): string => sortableId(clock.nowMs(), random)
  const recoverability = recoverabilityCounts(store, clock, timers)
  const metrics = openMetrics(core, { domain: settings().name, nodeMetrics: config.nodeMetrics })
  const alerts = await openUnresolvedAlerts(store, feed)
  const alerting = openAlerting(core, {
    authority,
    alerts,
    servers: () => ({ node: authority.serverIdentity(), recovery: recovery.serverIdentity() }),
    webhook: config.alertWebhook,
    clockToleranceMs: config.clockToleranceMs,
    domainName: settings().name,
    onDelivery: (outcome) => metrics.delivered(outcome),
  })
  const balancers = openBalancers(core, config.proxyFrom, metrics)
  const turnedAway = openTurnedAway(core, metrics, config.connectionsPerSource)
  const lived = openLivedTime(store, clock)
  const clockWarnings = await openClockWarning(core)
  // Not the recovery listener's certificate: taking the plane out of service for that would stop the node listener too.
  // There is an alert for it.
  const unready = (): readonly string[] => (stopping ? ['the plane is stopping'] : [])
  const connections = connectionShares(openFileLimit())
  const proofs = openProofVerifier(core, config.proofThread)
  const nodeServer = await openNodeServer(core, {
    authority,
    issuance,
    verifyProof: proofs.verify,
    recovery,
    programs,
    workers,
    settings,
    custody,
    taskSignerKeyPlace: config.taskSignerKeyPlace,
    handedOut: config.handedOut,
    ...{ urls, lived, correlation, balancers, turnedAway },
    connections: connections.node,
    tlsThreads: config.tlsThreads,
    barred: (node) => barredByPending(pending, node),
    workerBarred: (worker) => workerBarredByPending(pending, worker),
    metrics,
    alerting,
  })
  const { receipts, agentFiles, channel } = nodeServer
  const { channels, peerProofs } = channel
  const recoveryServer = await openRecoveryServer(core, {
    issuance,
    verifyProof: proofs.verify,
    recovery,
    domainName: settings().name,
    ...{ urls, correlation, balancers, turnedAway },
    connections: connections.recovery,
    limits: nodeServer.limits,
    channel,
    sightingJudge: nodeServer.sightingJudge,
    copiedImages: nodeServer.copiedImages,
    metrics,
    alerting,
  })
  const cutOffs = openPendingCutOffs(
    core,
    {
      denyList: nodeServer.denyList,
      files: cutOffFiles,
      epochsHere: (node) => channel.sessions.of(node).map(({ principal }) => principal.epoch),
    },
    pending,
  )
  cutOffs.enforce()
  await raisePutBack(core, settings().name, keeping.putBack)
  const keyBook = await openKeyBook(core, keySeal, alerts)
  const journalWatch = openJournalWatch(core, {
    alerts,
    keyBook,
    domainName: () => settings().name,
    loopLoad: openLoopLoad(),
  })
  metrics.measure({
    authority,
    channels,
    alerts,
    journalWatch,
    admission: nodeServer.limits.admission,
    alerting,
    issuers: () => issuers.known.all().map((one) => ({ name: one.name, health: issuers.outside.health(one) })),
    notReady: () => notReady({ store, authority, clock, alsoUnready: unready }),
  })
  const statusServer = openStatusServer(core, {
    custody,
    lived,
    turnedAway,
    statusUrl: config.statusUrl,
    measures: metrics.status,
  })
  const stopMachineDoors = (withinMs: number): Promise<unknown> =>
    Promise.all([nodeServer, recoveryServer, statusServer].map(({ listener }) => listener.stop(withinMs)))

  const shared = config.replica !== null
  // Before operators can call. One that cannot be written now is adopted when it is presented.
  await keyBook
    .lookAtAll()
    .catch((error: unknown) => log.warn({ err: error }, 'the operator keys could not all be looked at'))
  const socket = (store.sealedKeys === null ? soleSocket : takeSocket)(config.dataFolder)
  const openDoors = async (): Promise<OperatorListener> => {
    ports.node = await nodeServer.listener.listen({ ...config.nodeListen, shared })
    ports.recovery = await recoveryServer.listener.listen({ ...config.recoveryListen, shared })
    if (config.statusListen !== null)
      ports.status = await statusServer.listener.listen({ ...config.statusListen, shared })
    return openOperatorServer(
      core,
      {
        called: {
          authority,
          programs,
          programLists: nodeServer.programLists,
          workerIssuers: nodeServer.workerIssuers,
          keySets: nodeServer.keySets,
          issuers,
          issuance,
          recovery,
          channels,
          peers: peerProofs,
          receipts,
          cutOffs,
          revocationLists: statusServer.lists,
          journalWatch,
          keySeal,
          keyBook,
          urls,
          planeNames,
          taskSigners: nodeServer.taskSigners,
          agentFiles,
          recoverability,
        },
        metrics,
        settings,
        alerts,
        version: musterVersion,
        correlation,
        balancers,
        turnedAway,
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
    // Left open, the others would keep a process alive that no operator can reach.
    await stopMachineDoors(0)
    await proofs.close()
    await alerting.stop()
    metrics.close()
    socket.release()
    throw error
  })
  const background = startBackground(core, {
    tasks: [...nodeServer.upkeep, ...statusServer.upkeep, planeNames.upkeep, ...issuers.upkeep(alerts)],
    issuers: { lead: (leading) => issuers.lead(leading, issuance.book) },
    performCutOff: (order) => performCutOff(core, { authority, channels, receipts, peers: peerProofs }, order),
    maintainAuthority,
    recovery,
    programs,
    cutOffs,
    keyBook,
    ...{ alerts, alerting, journalWatch, custody },
    domainName: settings().name,
  })

  const ready: PlaneReady = {
    nodeUrl: urls().node,
    recoveryUrl: urls().recovery,
    operatorUrl: operators.tlsUrl === null ? (operators.httpUrl ?? '') : byServerName(config, operators.tlsUrl),
    statusUrl: config.statusListen === null ? null : urlOf(config.statusListen.host, ports.status),
    socketPath: operators.socket ?? '',
    rootFingerprint: authority.rootFingerprint(),
    domain: settings().name,
    dataFolder: config.dataFolder,
    firstRun: laid.firstRun,
    adminKeyHere: pathExists(adminKeyFile(config.dataFolder)),
    warnings: [
      ...readyBut(settings(), [], store),
      ...clockWarnings(),
      ...authority.view().warnings,
      ...listenWarning(config),
      ...keptWarning(names.kept()),
      ...(rootKeyFile === null ? [] : [`the root key is in ${rootKeyFile}: take it offline now`]),
    ],
  }
  return {
    ready,
    async stop() {
      stopping = true
      background.endUpkeep()
      nodeServer.endChannels()
      await Promise.all([stopMachineDoors(drainWithinMs), operators.stop(drainWithinMs)])
      await proofs.close()
      await background.stop()
      issuers.outside.close()
      await alerting.stop()
      metrics.close()
      socket.release()
    },
  }
}

/** Resolves when this process may not go on with its store: another one has to read it anew. */
const storeLost = ({ store }: LaidFoundation): Promise<Error> => new Promise((resolve) => store.onLost(resolve))

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
