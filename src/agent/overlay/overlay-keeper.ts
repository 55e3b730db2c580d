// Keeps what the node was told to run in force: from disk at the start, before and without the plane; anew when the plane says
// otherwise; and looks now and then whether it is still so.

import type { AgentParts } from '../agent-deps.ts'
import { pathExists } from '#platform/paths.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import type { PlaneConfig } from '#wire/channel.ts'
import type { CapabilityReportBody, ConfigOverlay, OverlayStateBody } from '#wire/overlay.ts'
import { tidy } from '../trouble.ts'
import { openOverlayFiles, overlayFolder } from './apply-files.ts'
import { machineCapabilities, type MachineCapabilities } from './capability-report.ts'
import { driftLines, driftOfFiles, driftOfServices } from './drift.ts'
import { openRunner, runnerKind } from './open-runner.ts'
import type { RunningService, ServiceRunner } from './service-runner.ts'
import { putInForce, type InForce } from './services.ts'
import { wantedServices } from './wanted-services.ts'

/** Where the plane is told; it takes only what that plane understands. */
export type OverlayTell = {
  overlayState(body: OverlayStateBody): void
  capabilities(body: CapabilityReportBody): void
}

export type OverlayKeeper = {
  /** What is on disk is put in force. */
  start(): void
  /** The plane has sent a configuration, and it was kept. */
  told(): void
  /** The channel in use; null: none. All is said once to every new one. */
  use(tell: OverlayTell | null): void
  /** The node was revoked: its services are stopped, and not started again by the next start. Nothing else is touched. */
  halt(): Promise<void>
  /** The agent ends. */
  close(): Promise<void>
}

export type OverlayDeps = Pick<
  AgentParts,
  'clock' | 'timers' | 'log' | 'lastConfig' | 'keeper' | 'board' | 'config' | 'storage'
> & {
  readonly wireguard: () => CapabilityReportBody['wireguard']
  readonly driftEveryMs?: number
}

const lookEveryMs = 1_000
const longestDetail = 256

type Configured = PlaneConfig & { readonly overlay: ConfigOverlay }

/** How it stands with `config`, which may not be the newest any more. */
type Standing = InForce & {
  readonly config: Configured
  readonly drift: readonly string[]
  readonly running: readonly RunningService[]
}

export const openOverlayKeeper = (deps: OverlayDeps): OverlayKeeper => {
  const { timers, clock, log, lastConfig, board } = deps
  const { stateFolder } = deps.config
  const files = openOverlayFiles(stateFolder)
  let runner: ServiceRunner | null = null
  let kind: ServiceRunner['kind'] | null = null
  let standing: Standing | null = null
  let machine: MachineCapabilities | null = null
  let tell: OverlayTell | null = null
  let said = { state: '', capabilities: '' }
  let shownLast = ''
  let busy: Promise<void> = Promise.resolve()
  let isDue = false
  let isOver = false
  let lookedAtMs = -Infinity
  let cancels: readonly (() => void)[] = []

  /** One after another; what goes wrong is said, and met again at the next look. */
  const queue = (job: () => Promise<void>): Promise<void> => {
    busy = busy.then(async () => {
      try {
        if (!isOver) await job()
      } catch (error) {
        log.warn({ err: error }, 'the overlay could not be looked after')
      }
    })
    return busy
  }
  const configured = (): Configured | null => {
    const config = lastConfig.current()
    return config?.overlay === undefined ? null : { ...config, overlay: config.overlay }
  }
  const environment = (vcluster: string | null): Record<string, string> => ({
    ...plainEnvironment(),
    MUSTER_OVERLAY: files.current,
    MUSTER_VCLUSTER: vcluster ?? '',
    MUSTER_NODE: deps.keeper.credentials().identity?.nodeId ?? '',
  })
  const isBare = (): boolean => !pathExists(overlayFolder(stateFolder))

  const publish = (): void => {
    if (standing !== null) publishState(standing)
    if (kind === null || tell === null) return
    machine ??= machineCapabilities('/sys')
    const vcluster = lastConfig.current()?.vcluster ?? null
    const report = { vcluster, ...machine, services: kind, wireguard: deps.wireguard() }
    const text = JSON.stringify(report)
    if (text === said.capabilities) return
    said.capabilities = text
    tell.capabilities(report)
  }
  const publishState = (how: Standing): void => {
    const state = stateOf(how)
    const here = shown(state, how)
    if (JSON.stringify(here) !== shownLast) board.facts({ overlay: here })
    shownLast = JSON.stringify(here)
    const text = JSON.stringify(state)
    if (text === said.state || tell === null) return
    said.state = text
    tell.overlayState(state)
  }

  const apply = async (how: 'as needed' | 'anew'): Promise<void> => {
    isDue = false
    kind ??= await runnerKind(stateFolder)
    const config = configured()
    const wantsNothing = config === null || (config.overlay.services.length === 0 && config.overlay.files.length === 0)
    if (!wantsNothing || !isBare()) runner ??= await openRunner(kind, deps, stateFolder)
    if (config !== null && wantsNothing && isBare()) standing = { ...nothing, config }
    else if (config !== null) {
      const { overlay, vcluster } = config
      const inForce = await putInForce({ files, runner, overlay, env: environment(vcluster), how })
      tellApplied(inForce)
      standing = { ...inForce, config, drift: [], running: (await runner?.services()) ?? [] }
    }
    publish()
  }
  const tellApplied = ({ applied, detail, stopped, started }: InForce): void => {
    if (!applied) log.error({ detail }, 'the overlay is not in force')
    if (!applied && detail !== standing?.detail)
      board.news('overlay', 'overlay_failed', `It is not in force: ${detail}`)
    if (stopped.length === 0 && started.length === 0) return
    log.info({ stopped, started }, 'the services of the overlay have changed')
    board.news('overlay', 'services', `Services stopped: ${listed(stopped)}; started: ${listed(started)}.`)
  }

  /** How the services are. */
  const look = async (): Promise<void> => {
    if (runner === null || standing === null) return
    lookedAtMs = clock.monotonicMs()
    standing = { ...standing, running: await runner.services() }
    publish()
  }
  const lookForDrift = async (): Promise<void> => {
    const config = configured()
    if (config === null || standing === null) return apply('as needed')
    if (!standing.applied) return apply('as needed')
    if (!config.overlay.detect_drift || runner === null) return
    const drift = await driftNow(config.overlay)
    if (drift.join() !== standing.drift.join() && drift.length > 0) {
      log.warn({ drift }, 'what was applied is not what is there any more')
      board.news('overlay', 'drift', `Drift: ${drift.join('; ')}`)
    }
    standing = { ...standing, drift, running: await runner.services() }
    publish()
    if (drift.length === 0 || config.overlay.policy.enforcement_mode !== 'enforce') return
    await apply(drift.every((line) => line.startsWith('service ')) ? 'as needed' : 'anew')
    const left = await driftNow(config.overlay)
    log.warn({ drift, left }, left.length === 0 ? 'drift was put right' : 'drift could not be put right')
    if (left.length === 0) board.news('overlay', 'drift_corrected', `Put right: ${drift.join('; ')}`)
    if (standing !== null) standing = { ...standing, drift: left }
    publish()
  }
  const driftNow = async (overlay: ConfigOverlay): Promise<readonly string[]> =>
    driftLines(
      ...driftOfFiles(files.current, files.areInForce(overlay.files), overlay.files),
      ...driftOfServices(wantedServices(overlay, files.current), (await runner?.services()) ?? []),
    )

  const dueAgain = (): void => {
    if (isDue || isOver) return
    isDue = true
    void queue(() => apply('as needed'))
  }
  const stopLooking = (): void => {
    isOver = true
    for (const cancel of cancels) cancel()
  }

  return {
    start: () => {
      dueAgain()
      const tick = (): void => {
        if (runner !== null && clock.monotonicMs() - lookedAtMs >= runner.lookEveryMs) void queue(look)
        else publish()
      }
      const driftEveryMs = deps.driftEveryMs ?? 30_000
      cancels = [timers.every(lookEveryMs, tick), timers.every(driftEveryMs, () => void queue(lookForDrift))]
    },
    told: dueAgain,
    use: (next) => {
      tell = next
      machine = null
      said = { state: '', capabilities: '' }
      publish()
    },
    halt: () =>
      queue(async () => {
        lastConfig.forget()
        if (runner === null && isBare()) return
        runner ??= await openRunner(kind ?? (await runnerKind(stateFolder)), deps, stateFolder)
        const stopped = (await runner.services()).map(({ name }) => name)
        await runner.stop(stopped)
        standing = null
        if (stopped.length > 0) board.news('overlay', 'services', `Revoked: services stopped: ${listed(stopped)}.`)
      }),
    close: async () => {
      stopLooking()
      // At once: what is under way may be waiting for one that does not end.
      await runner?.close()
      await busy
      await runner?.close()
    },
  }
}

const nothing: Omit<Standing, 'config'> = {
  applied: true,
  detail: null,
  stopped: [],
  started: [],
  drift: [],
  running: [],
}

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))

const stateOf = ({ config, ...standing }: Standing): OverlayStateBody => ({
  config_revision: config.revision,
  applied: standing.applied,
  detail: standing.detail === null ? null : tidy(standing.detail, longestDetail),
  services: config.overlay.services.map(({ name }) => {
    const here = standing.running.find((service) => service.name === name)
    return { name, state: here?.state ?? 'failed', restarts: here?.restarts ?? 0 }
  }),
  drift: [...standing.drift],
})

/** For people on the machine, with what only they can use. */
const shown = ({ applied, detail, services, drift }: OverlayStateBody, { config, running }: Standing) => ({
  vcluster_revision: config.overlay.vcluster_revision,
  applied,
  detail,
  services: services.map((service) => ({
    ...service,
    pid: running.find(({ name }) => name === service.name)?.pid ?? null,
  })),
  drift,
})
