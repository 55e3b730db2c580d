// How the overlay stands, told to people on the machine and to the plane: what has changed, and all of it to every new channel.

import type { AgentRecord } from '#agent/diagnostics/record.ts'
import type { PlaneConfig } from '#wire/channel/channel.ts'
import type { CapabilityReportBody, OverlayStateBody } from '#wire/node/node-runs.ts'
import type { ConfigOverlay } from '#wire/fleet/overlay.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { tidy } from '#agent/core/trouble.ts'
import { kernelRelease, readAccelerators } from '#platform/accelerators.ts'
import { readMachineFacts } from '#platform/hardware.ts'
import type { RunningService } from './service-runner.ts'
import type { InForce } from './services.ts'

/** Where the plane is told; it takes only what that plane understands. */
export type OverlayTell = {
  overlayState(body: OverlayStateBody): void
  capabilities(body: CapabilityReportBody): void
}

export type Configured = PlaneConfig & { readonly overlay: ConfigOverlay }

/** How it stands with `config`, which may not be the newest any more. */
export type AppliedOverlay = InForce & {
  readonly config: Configured
  readonly drift: readonly string[]
  readonly running: readonly RunningService[]
}

type Capabilities = Pick<CapabilityReportBody, 'vcluster' | 'services' | 'wireguard'>

export type OverlayTeller = {
  use(tell: OverlayTell | null): void
  standing(how: AppliedOverlay): void
  capabilities(what: Capabilities): void
}

const longestDetail = 256

export const openOverlayTeller = (record: Pick<AgentRecord, 'facts'>): OverlayTeller => {
  let tell: OverlayTell | null = null
  let machine: MachineCapabilities | null = null
  let said = { state: '', capabilities: '' }
  let shown = ''
  return {
    use: (next) => {
      tell = next
      said = { state: '', capabilities: '' }
      machine = null
    },
    standing: (how) => {
      const state = stateOf(how)
      const here = statusOf(state, how)
      if (JSON.stringify(here) !== shown) record.facts({ overlay: here })
      shown = JSON.stringify(here)
      const text = JSON.stringify(state)
      if (tell === null || text === said.state) return
      said.state = text
      tell.overlayState(state)
    },
    capabilities: (what) => {
      if (tell === null) return
      machine ??= machineCapabilities('/sys')
      const report = { ...what, ...machine }
      const text = JSON.stringify(report)
      if (text === said.capabilities) return
      said.capabilities = text
      tell.capabilities(report)
    },
  }
}

const stateOf = ({ config, applied, detail, running, drift }: AppliedOverlay): OverlayStateBody => ({
  config_revision: config.revision,
  applied,
  detail: detail === null ? null : tidy(detail, longestDetail),
  services: config.overlay.services.map(({ name }) => {
    const here = running.find((service) => service.name === name)
    return { name, state: here?.state ?? 'failed', restarts: here?.restarts ?? 0 }
  }),
  drift: [...drift],
})

/** With what only people on the machine can use. */
const statusOf = (
  { applied, detail, services, drift }: OverlayStateBody,
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
