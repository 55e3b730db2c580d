// Keeps the overlay of the node in force: from disk at the start, without the plane; again when the plane sends another
// configuration; looks for drift periodically, and makes the health checks of the vCluster.

import * as path from 'node:path'
import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { CallingAgent } from '#agent/link/plane-client.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { pathExists } from '#platform/paths.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import type { CapabilityReportBody } from '#wire/node/node-runs.ts'
import { overlayFaultIn } from '#wire/core/overlay-statement.ts'
import type { ConfigOverlay } from '#wire/fleet/overlay.ts'
import { openOverlayFiles, overlayFolder } from './apply-files.ts'
import { driftLines, driftOfFiles, driftOfServices } from './drift.ts'
import { openHealthChecks } from './health-checks.ts'
import { noHelp, type Helped } from './helped-runner.ts'
import { openRunnerChoice } from './open-runner.ts'
import { openOverlayReporter, type Configured, type OverlaySender, type AppliedOverlay } from './overlay-reporter.ts'
import { openOverlayStatements } from './overlay-statements.ts'
import { openSecretDigest } from './secret-digest.ts'
import type { RunningService } from './service-runner.ts'
import { putInForce, type InForce } from './services.ts'
import { machineTrees, type Trees } from './shipped-checks.ts'
import { wantedServices, type WantedService } from './wanted-services.ts'

export type OverlayKeeper = {
  /** Puts the configuration on disk in force. */
  start(): void
  /** The plane has sent a configuration, and it was kept. */
  configChanged(): void
  /** The channel in use; null: none. Every new channel gets the whole state once. */
  use(sender: OverlaySender | null): void
  /** The plane can be asked for statements until the agent is stopped. */
  keep(agent: CallingAgent, identityNow: () => Identity): Promise<void>
  /**
   * The node was revoked: its services are stopped, and not started again by the next start. Nothing else is touched. False: they could
   * not all be stopped, as while the helper is away.
   */
  halt(): Promise<boolean>
  /** The agent ends. */
  close(): Promise<void>
}

const lookEveryMs = 1_000
const usualDriftMs = 30_000

/** What of the machine it uses. `helped`: asked when something is to be run, and as often as that. */
type OverlayHost = {
  readonly helped: () => Promise<Helped>
  readonly trees: Trees
  readonly driftEveryMs: number
}

/** `linkKind`: what serves the WireGuard interface of this node. */
export const openOverlayKeeper = (
  core: Pick<AgentCore, 'clock' | 'timers' | 'random' | 'log'>,
  { stateFolder: givenFolder }: Pick<AgentConfig, 'stateFolder'>,
  { keeper, lastConfig, record }: Pick<AgentParts, 'keeper' | 'lastConfig' | 'record'>,
  linkKind: () => CapabilityReportBody['wireguard'],
  { helped = async () => noHelp, trees = machineTrees, driftEveryMs = usualDriftMs }: Partial<OverlayHost> = {},
): OverlayKeeper => {
  const { clock, timers, random, log } = core
  // Services run elsewhere, and systemd knows no place but from the root.
  const stateFolder = path.resolve(givenFolder)
  const secretDigest = openSecretDigest(stateFolder, random)
  const files = openOverlayFiles(stateFolder, secretDigest)
  const reporter = openOverlayReporter(record)
  const statements = openOverlayStatements(core, record, helped)
  const checks = openHealthChecks(
    core,
    async () => (await helped()).checks,
    trees,
    () => publish(),
  )
  const waiting = new Set<string>()
  const runners = openRunnerChoice(core, stateFolder, helped)
  let latest: AppliedOverlay | null = null
  let busy: Promise<void> = Promise.resolve()
  let isOver = false
  let lookedAtMs = -Infinity
  let cancels: readonly (() => void)[] = []

  /** Runs jobs one after another; each name waits at most once. A failed job is logged and tried again at the next look. */
  const queue = (name: string, job: () => Promise<void>): void => {
    if (waiting.has(name)) return
    waiting.add(name)
    busy = busy.then(async () => {
      waiting.delete(name)
      try {
        if (!isOver) await job()
      } catch (error) {
        log.warn({ err: error }, 'the overlay could not be checked or applied')
      }
    })
  }
  const configured = (): Configured | null => {
    const config = lastConfig.current()
    return config?.overlay === undefined ? null : { ...config, overlay: config.overlay }
  }
  const environment = (vcluster: string | null): Record<string, string> => ({
    ...plainEnvironment(),
    MUSTER_OVERLAY: files.current,
    MUSTER_VCLUSTER: vcluster ?? '',
    MUSTER_NODE: keeper.credentials().identity?.nodeId ?? '',
  })
  /** No overlay has ever been here: a node without one gets no folder and no runner. */
  const isBare = (): boolean => !pathExists(overlayFolder(stateFolder))
  const services = async (): Promise<readonly RunningService[]> => (await runners.runner()?.services()) ?? []

  const publish = (): void => {
    if (latest !== null) reporter.state({ ...latest, checks: checks.states() })
    const kind = runners.kind()
    if (kind === null) return
    const vcluster = lastConfig.current()?.vcluster ?? null
    reporter.capabilities({ vcluster, services: kind, wireguard: linkKind() })
  }

  const apply = async (how: 'as needed' | 'anew'): Promise<void> => {
    const config = configured()
    const wantsNothing = config === null || config.overlay.services.length + config.overlay.files.length === 0
    const left = await runners.choose(!wantsNothing || !isBare())
    if (config === null) return
    const inForce = wantsNothing && isBare() ? nothing : await attempted(config, how)
    recordApplied({ ...inForce, stopped: [...left, ...inForce.stopped] })
    // Asked now: a service that was started just now is not one that is missing.
    latest = { ...inForce, config, drift: latest?.drift ?? [], running: await services(), checks: [] }
    const wanted = config.overlay.checks ?? []
    // One that is refused is made again when its turn comes, which may be in a day.
    if (wanted.length > 0) await statements.bring(config.revision, 'if-new')
    checks.configure(wanted, files.current, environment(config.vcluster))
  }
  /** By the statement that the helper has, so that no start waits for the plane; with a new one what it refuses by that. */
  const attempted = async (config: Configured, how: 'as needed' | 'anew'): Promise<InForce> => {
    const first = await attemptedOnce(config, how)
    const lacksOne = isRefused(first) || isCheckRefused()
    if (!lacksOne || !(await statements.bring(config.revision, 'again')))
      return withTrouble(first, statements.trouble())
    // All that the helper has refused are made anew.
    if (isCheckRefused()) checks.close()
    const { stopped, started, ...second } = await attemptedOnce(config, 'as needed')
    return { ...second, stopped: [...first.stopped, ...stopped], started: [...first.started, ...started] }
  }
  const isCheckRefused = (): boolean => checks.states().some(({ line }) => overlayFaultIn(line) !== null)
  const attemptedOnce = async ({ overlay, vcluster }: Configured, how: 'as needed' | 'anew'): Promise<InForce> => {
    try {
      return await putInForce({
        files,
        runner: runners.runner(),
        overlay,
        env: environment(vcluster),
        secretDigest,
        how,
      })
    } catch (error) {
      return { ...nothing, applied: false, detail: error instanceof Error ? error.message : String(error) }
    }
  }
  const recordApplied = ({ applied, detail, unstarted, stopped, started }: InForce): void => {
    for (const { name, why } of unstarted) {
      log.error({ service: name, why }, 'a service could not be started')
      if (latest?.unstarted.some((before) => before.name === name && before.why === why) !== true)
        record.changed('overlay', 'service_failed', `Service ${name} could not be started: ${why}`)
    }
    if (!applied) log.error({ detail }, 'the overlay is not in force')
    if (!applied && detail !== latest?.detail)
      record.changed('overlay', 'overlay_failed', `It is not in force: ${detail}`)
    if (stopped.length === 0 && started.length === 0) return
    log.info({ stopped, started }, 'the services of the overlay have changed')
    record.changed('overlay', 'services', `Services stopped: ${listed(stopped)}; started: ${listed(started)}.`)
  }

  /** Looks at the services only. */
  const look = async (): Promise<void> => {
    lookedAtMs = clock.monotonicMs()
    if (await runners.isOutdated()) return putInForceNow()
    await lookAtServices()
    publish()
  }
  const lookAtServices = async (): Promise<void> => {
    const running = await services()
    if (latest === null) return
    for (const { name, state, error } of running) {
      const was = latest.running.find((one) => one.name === name)?.state
      if (state === 'failed' && was !== 'failed')
        record.changed('overlay', 'service_failed', `Service ${name}: ${error ?? 'not running'}`)
      if (state === 'running' && was === 'failed') record.changed('overlay', 'services', `Service ${name} runs again.`)
    }
    latest = { ...latest, running }
  }
  const driftNow = async ({ overlay }: Configured): Promise<readonly string[]> =>
    driftLines(
      ...driftOfFiles(files.current, files.areInForce(overlay.files), overlay.files),
      ...driftOfServices(startedOf(overlay), await services()),
    )
  /** What could not be started has not drifted. */
  const startedOf = (overlay: ConfigOverlay): readonly WantedService[] =>
    wantedServices(overlay, files.current, secretDigest).filter(
      ({ name }) => latest?.unstarted.some((one) => one.name === name) !== true,
    )
  /** Compares with the applied overlay; an overlay that was not applied cannot have drifted. */
  const compare = async (): Promise<readonly string[]> => {
    if (latest === null) return []
    const { applied, config, drift: before } = latest
    const isCompared = applied && runners.runner() !== null && config.overlay.detect_drift
    const drift = isCompared ? await driftNow(config) : []
    if (drift.length > 0 && drift.join() !== before.join()) {
      log.warn({ drift }, 'the overlay has drifted')
      record.changed('overlay', 'drift', `Drift: ${drift.join('; ')}`)
    }
    latest = { ...latest, drift }
    await lookAtServices()
    return drift
  }
  /** Drift that is put right at once is on record here and is not reported: an alert would begin and end with it. */
  const lookForDrift = async (): Promise<void> => {
    if (latest !== null) await statements.bring(latest.config.revision, 'if-new')
    const drift = await compare()
    if (drift.length > 0 && latest !== null && isEnforced(latest.config.overlay)) {
      await apply(drift.every((line) => line.startsWith('service ')) ? 'as needed' : 'anew')
      const left = await compare()
      log.warn({ drift, left }, left.length === 0 ? 'drift was corrected' : 'drift could not be corrected')
      if (left.length === 0) record.changed('overlay', 'drift_corrected', `Put right: ${drift.join('; ')}`)
    }
    publish()
  }
  const isWhole = (): boolean => latest !== null && latest.applied && latest.unstarted.length === 0 && !isCheckRefused()
  const putInForceNow = async (): Promise<void> => {
    await apply('as needed')
    await lookForDrift()
  }

  return {
    start: () => {
      queue('apply', putInForceNow)
      const tick = (): void => {
        const runner = runners.runner()
        if (runner !== null && clock.monotonicMs() - lookedAtMs >= runner.lookEveryMs) queue('look', look)
        else publish()
      }
      const compareOrRetry = (): void =>
        queue('drift', async () => (isWhole() && !(await runners.isOutdated()) ? lookForDrift() : putInForceNow()))
      cancels = [timers.every(lookEveryMs, tick), timers.every(driftEveryMs, compareOrRetry)]
    },
    configChanged: () => queue('apply', putInForceNow),
    use: (next) => {
      reporter.use(next)
      publish()
    },
    keep: (agent, identityNow) => {
      const kept = statements.keep(agent, identityNow)
      // What the helper has refused since the start may only have waited for the plane.
      if (latest !== null && !isWhole()) queue('apply', putInForceNow)
      return kept
    },
    halt: async () => {
      let isDone = false
      queue('halt', async () => {
        lastConfig.forget()
        latest = null
        checks.close()
        if (runners.runner() === null && isBare()) return void (isDone = true)
        const left = await runners.choose(true)
        const running = (await services()).map(({ name }) => name)
        await runners.runner()?.stop(running)
        const stopped = [...left, ...running]
        if (stopped.length > 0) record.changed('overlay', 'services', `Revoked: services stopped: ${listed(stopped)}.`)
        isDone = true
      })
      await busy
      return isDone
    },
    close: async () => {
      isOver = true
      checks.close()
      for (const cancel of cancels) cancel()
      // Before `busy`: the job under way may be waiting for a service that does not end.
      await runners.runner()?.close()
      await busy
      await runners.runner()?.close()
    },
  }
}

const nothing: InForce = { applied: true, detail: null, unstarted: [], stopped: [], started: [] }

const isRefused = ({ unstarted }: InForce): boolean => unstarted.some(({ why }) => overlayFaultIn(why) !== null)

/** What the helper refuses for want of a statement says why there is none: that is what can be put right. */
const withTrouble = (inForce: InForce, trouble: string | null): InForce => ({
  ...inForce,
  unstarted: inForce.unstarted.map(({ name, why }) => ({
    name,
    why: trouble === null || overlayFaultIn(why) === null ? why : trouble,
  })),
})

const isEnforced = ({ policy }: ConfigOverlay): boolean => policy.enforcement_mode === 'enforce'

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
