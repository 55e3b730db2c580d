// A plane, from its configuration to its end. Everything real is made here and in foundation.ts, and nowhere else.

import * as path from 'node:path'
import type { DomainSettings } from '#domain/domain-settings.ts'
import { isIP } from '#platform/addresses.ts'
import { openLog } from '#platform/log.ts'
import { sortableId } from '#platform/random.ts'
import { musterVersion } from '#platform/version.ts'
import { nodeUrlOf, type PlaneConfig } from './config.ts'
import { openFeed, type Feed } from './feed/feed.ts'
import { layFoundation, type Foundation } from './foundation.ts'
import type { Initialised } from './initialise.ts'
import { openAuthority } from './issuer/built-in-authority.ts'
import { openMetrics } from './metrics.ts'
import { openNodePlane } from './node-plane.ts'
import { openOperatorPlane } from './operator-plane.ts'
import { startUpkeep } from './upkeep.ts'

export type PlaneReady = {
  readonly nodeUrl: string
  readonly operatorUrl: string
  readonly socketPath: string
  readonly rootFingerprint: string
  readonly domain: string
  readonly dataFolder: string
  readonly firstRun: boolean
  readonly warnings: readonly string[]
}

const drainWithinMs = 5000

/** Resolves when `stop` has been asked for and everything acknowledged is on disk. */
export const runPlane = async (
  config: PlaneConfig,
  onReady: (ready: PlaneReady) => void,
  stop: AbortSignal,
): Promise<void> => {
  const log = openLog(config.logLevel, 'plane')
  const foundation = await layFoundation(config, log)
  try {
    const plane = await openPlane(config, foundation)
    onReady(plane.ready)
    await aborted(stop)
    log.info('stopping')
    await plane.stop()
  } finally {
    await foundation.store.close()
  }
}

const openPlane = async (config: PlaneConfig, foundation: Foundation & Initialised) => {
  const { store, clock, random } = foundation
  const feed = openFeed()
  const settings = await followSettings(foundation, feed)
  const authority = await openAuthority({
    ...foundation,
    feed,
    options: {
      domain: settings().name,
      issuerKey: config.issuerKey,
      intermediateLifetimeMs: config.intermediateLifetimeMs,
      serverNames: { dns: config.serverNames.filter((name) => !isIP(name)), ip: config.serverNames.filter(isIP) },
      serverLifetimeMs: config.serverCertificateLifetimeMs,
    },
  })
  const maintain = async (): Promise<void> => {
    const profiles = await store.profiles()
    await authority.maintain(Math.max(0, ...profiles.map(({ value }) => value.certificate.lifetimeMs)))
  }
  await maintain()

  let nodePort = config.nodeListen.port
  let stopping = false
  const correlation = (): string => sortableId(clock.nowMs(), random)
  const shared = { ...foundation, feed, authority, settings, correlation, nodeUrl: () => nodeUrlOf(config, nodePort) }
  const nodePlane = await openNodePlane({ ...shared, onRefusal: ({ refusal }) => metrics.refused(refusal.code) })
  const { channels } = nodePlane
  const metrics = openMetrics({ store, feed, channels, authority, admissionQueue: () => nodePlane.admission.waiting() })
  nodePort = await nodePlane.listener.listen(config.nodeListen.host, config.nodeListen.port)

  const operators = await openOperatorPlane(
    {
      ...shared,
      channels,
      metrics,
      nodeRoutes: nodePlane.routes,
      version: musterVersion,
      unready: () => (stopping ? ['the plane is stopping'] : []),
    },
    {
      socket: path.join(config.dataFolder, 'run', 'operator.sock'),
      http: config.operatorTls ? null : config.operatorListen,
      tls: config.operatorTls ? config.operatorListen : null,
    },
  ).catch(async (error: unknown) => {
    // Left open, the node plane would keep a process alive that nobody can operate.
    await nodePlane.listener.stop(0)
    metrics.close()
    throw error
  })
  const endUpkeep = startUpkeep(foundation, [
    ...nodePlane.upkeep,
    { name: 'authority', everyMs: authorityEveryMs, run: maintain },
  ])

  const { rootKeyFile } = foundation
  const ready: PlaneReady = {
    nodeUrl: shared.nodeUrl(),
    operatorUrl: operators.tlsUrl === null ? (operators.httpUrl ?? '') : byServerName(config, operators.tlsUrl),
    socketPath: operators.socket ?? '',
    rootFingerprint: authority.rootFingerprint(),
    domain: settings().name,
    dataFolder: config.dataFolder,
    firstRun: foundation.firstRun,
    warnings: [
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
      await Promise.all([nodePlane.listener.stop(drainWithinMs), operators.stop(drainWithinMs)])
      metrics.close()
    },
  }
}

/** An address is of no use to a client that verifies names, unless the certificate names it. */
const byServerName = (config: PlaneConfig, url: string): string => {
  const { hostname, port } = new URL(url)
  return config.serverNames.includes(hostname) ? url : nodeUrlOf(config, Number(port))
}

/** Cheap when nothing is due. */
const authorityEveryMs = 5000

/** The domain's settings as last committed, without a read on every use. */
const followSettings = async ({ store }: Foundation, feed: Feed): Promise<() => DomainSettings> => {
  const row = await store.get('domain', 'domain')
  if (row === null) throw new Error('the data folder has no domain')
  let settings = row.value
  feed.subscribe(({ writes }) => {
    for (const write of writes) if (write.put === 'domain') settings = write.value
  })
  return () => settings
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
