// What the machine can do, for whoever places work on it; also in maintenance mode, and then without a vCluster.

import { kernelRelease, readAccelerators } from '#platform/accelerators.ts'
import { readMachineFacts } from '#platform/hardware.ts'
import type { CapabilityReportBody } from '#wire/node/node-runs.ts'

/** What does not change while the agent runs, or hardly ever. */
export type MachineCapabilities = Omit<CapabilityReportBody, 'vcluster' | 'services' | 'wireguard'>

const mostAccelerators = 32

/** `sys` is where sysfs is mounted. */
export const machineCapabilities = (sys: string): MachineCapabilities => {
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
