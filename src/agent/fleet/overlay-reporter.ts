// Reports the state of the overlay to the status file and to the plane: each change, and everything to every new channel.

import type { AgentRecord } from '#agent/diagnostics/record.ts'
import type { PlaneConfig } from '#wire/channel/channel.ts'
import type { CapabilityReportBody, OverlayStateBody } from '#wire/node/node-runs.ts'
import type { ConfigOverlay } from '#wire/fleet/overlay.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { tidy } from '#agent/core/trouble.ts'
import { kernelRelease, readAccelerators } from '#platform/accelerators.ts'
import { readMachineFacts } from '#platform/hardware.ts'
import type { CheckState } from './health-checks.ts'
import type { RunningService } from './service-runner.ts'
import type { InForce } from './services.ts'

/** Sends to the plane, and only what that plane understands. */
export type OverlaySender = {
  overlayState(body: OverlayStateBody): void
  capabilities(body: CapabilityReportBody): void
}

export type Configured = PlaneConfig & { readonly overlay: ConfigOverlay }

/** The state of `config`, which may no longer be the newest. */
export type AppliedOverlay = InForce & {
  readonly config: Configured
  readonly drift: readonly string[]
  readonly running: readonly RunningService[]
  readonly checks: readonly CheckState[]
}

type Capabilities = Pick<CapabilityReportBody, 'vcluster' | 'services' | 'wireguard'>

export type OverlayReporter = {
  use(sender: OverlaySender | null): void
  state(how: AppliedOverlay): void
  capabilities(what: Capabilities): void
}

const longestDetail = 256

export const openOverlayReporter = (record: Pick<AgentRecord, 'facts'>): OverlayReporter => {
  let sender: OverlaySender | null = null
  let machine: MachineCapabilities | null = null
  let said = { state: '', capabilities: '' }
  let shown = ''
  return {
    use: (next) => {
      sender = next
      said = { state: '', capabilities: '' }
      machine = null
    },
    state: (how) => {
      const state = stateOf(how)
      const here = statusOf(state, how)
      if (JSON.stringify(here) !== shown) record.facts({ overlay: here })
      shown = JSON.stringify(here)
      const text = JSON.stringify(state)
      if (sender === null || text === said.state) return
      said.state = text
      sender.overlayState(state)
    },
    capabilities: (what) => {
      if (sender === null) return
      machine ??= machineCapabilities('/sys')
      const report = { ...what, ...machine }
      const text = JSON.stringify(report)
      if (text === said.capabilities) return
      said.capabilities = text
      sender.capabilities(report)
    },
  }
}

/** So many at most say what they wrote, so that the frame keeps its limit. */
const mostOutputs = 8

const stateOf = ({ config, applied, detail, unstarted, running, drift, checks }: AppliedOverlay): OverlayStateBody => {
  let outputs = 0
  const services = config.overlay.services.map(({ name }): OverlayStateBody['services'][number] => {
    const here = running.find((service) => service.name === name)
    const refusal = unstarted.find((one) => one.name === name)?.why ?? null
    const error = refusal === null ? tidied(here?.error ?? null) : refusalLine(refusal, here)
    const isUnstarted = refusal !== null
    const output = here !== undefined && here.output.length > 0 && outputs++ < mostOutputs ? here.output : []
    return {
      name,
      state: here === undefined || isUnstarted ? 'failed' : here.state,
      restarts: here?.restarts ?? 0,
      ...(error !== null && { error }),
      ...(output.length > 0 && { output: [...output] }),
      ...(here !== undefined && here.unapplied.length > 0 && { unapplied: [...here.unapplied] }),
    }
  })
  return {
    config_revision: config.revision,
    applied,
    detail: tidied(detail),
    services,
    drift: [...drift],
    ...(checks.length > 0 && { checks: checks.map((check) => ({ ...check })) }),
  }
}

const tidied = (text: string | null): string | null => (text === null ? null : tidy(text, longestDetail))

const stillRuns = '; the service it was before still runs'

/** What was started before goes on while another one in its place is refused. */
const refusalLine = (why: string, here: RunningService | undefined): string =>
  here?.state === 'running' ? tidy(why, longestDetail - stillRuns.length) + stillRuns : tidy(why, longestDetail)

/** With what only people on the machine can use. */
const statusOf = (
  { applied, detail, services, drift, checks = [] }: OverlayStateBody,
  { config, running }: AppliedOverlay,
): NonNullable<StatusFile['overlay']> => ({
  vcluster_revision: config.overlay.vcluster_revision,
  applied,
  detail,
  services: services.map((service) => ({
    ...service,
    pid: running.find(({ name }) => name === service.name)?.pid ?? null,
  })),
  drift,
  checks,
})

/** What does not change while the agent runs, or hardly ever. */
type MachineCapabilities = Omit<CapabilityReportBody, 'vcluster' | 'services' | 'wireguard'>

const mostAccelerators = 32

/** For schedulers, also in maintenance mode, and then without a vCluster. `sys` is where sysfs is mounted. */
const machineCapabilities = (sys: string): MachineCapabilities => {
  const { cpuCores, memoryBytes, arch } = readMachineFacts()
  return {
    cpu_cores: cpuCores,
    memory_bytes: memoryBytes,
    arch: arch.slice(0, 32),
    kernel: kernelRelease().slice(0, 128),
    accelerators: readAccelerators(sys)
      .slice(0, mostAccelerators)
      .map((one) => ({ ...one })),
  }
}
