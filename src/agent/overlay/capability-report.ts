// What the machine can do, for whoever places work on it; also in maintenance mode, and then without a vCluster.

import { kernelRelease, readAccelerators } from '#platform/accelerators.ts'
import { readMachineFacts } from '#platform/hardware.ts'
import type { CapabilityReportBody } from '#wire/overlay.ts'

/** Depends on what the agent runs under; the rest is the machine's. */
export type CapabilityFacts = Pick<CapabilityReportBody, 'vcluster' | 'services' | 'wireguard'>

const mostAccelerators = 32

/** `sys` is where sysfs is mounted. */
export const capabilityReport = (facts: CapabilityFacts, sys = '/sys'): CapabilityReportBody => {
  const { cpuCores, memoryBytes, arch } = readMachineFacts()
  return {
    ...facts,
    cpu_cores: cpuCores,
    memory_bytes: memoryBytes,
    arch: arch.slice(0, 32),
    kernel: kernelRelease().slice(0, 128),
    accelerators: readAccelerators(sys)
      .slice(0, mostAccelerators)
      .map((one) => ({ ...one })),
  }
}
