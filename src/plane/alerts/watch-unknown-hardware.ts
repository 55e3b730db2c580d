// Machines that no node is registered for and that ask to join again and again: a forgotten registration, a typing error in a
// MAC, or a stranger. Hardware costs a caller nothing to invent, so there is one alert for all of them, counted in memory: it is
// written when the first machine reaches the threshold, and again whenever their number has doubled.

import {
  failuresToAlert,
  quietToResolveMs,
  unknownHardware,
  unknownHardwareAlert,
  withFailure,
} from '#domain/alerts/alert-failures.ts'
import type { HardwareIdentity } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { raiseAlert, reconcileSource, type UnresolvedAlerts } from './reconcile-alerts.ts'

export type UnknownHardwareWatch = {
  take(refusal: Refusal, source: string): void
  /** Resolves the alert once no machine has reached the threshold for long enough. */
  sweep(leading: FlowCore): Promise<void>
  /** Resolves when what is under way has ended. */
  settled(): Promise<void>
}

/** Machines counted at once; the one that failed longest ago makes room. */
const mostMachines = 1000

export const watchUnknownHardware = (
  core: Core,
  alerts: UnresolvedAlerts,
  domainName: string,
): UnknownHardwareWatch => {
  const failures = new Map<string, readonly number[]>()
  const repeated = new Set<string>()
  let alerted = 0
  let lastMs = core.clock.monotonicMs()
  let raising: Promise<unknown> | null = null

  const remember = (machine: string, times: readonly number[]): void => {
    failures.delete(machine)
    failures.set(machine, times)
    const [oldest] = failures.keys()
    if (failures.size > mostMachines && oldest !== undefined) failures.delete(oldest)
  }
  const raise = (last: HardwareIdentity, source: string): void => {
    const machines = repeated.size
    const isOpen = alerts.has('unknown_hardware', domainName)
    // After a restart the count begins anew, and the alert that is open says enough.
    if (isOpen && alerted === 0) alerted = machines
    if (raising !== null || (isOpen && machines < alerted * 2)) return
    const failed = { machines, atLeast: machines === mostMachines, last, source }
    const wanted = unknownHardwareAlert(domainName, failed, isOpen ? core.clock.nowMs() : null)
    alerted = machines
    raising = raiseAlert(core, wanted)
      .catch((error: unknown) => core.log.warn({ err: error }, 'the alert about unknown hardware could not be raised'))
      .finally(() => (raising = null))
  }
  const forget = (): void => {
    repeated.clear()
    alerted = 0
  }
  const isQuiet = (): boolean => core.clock.monotonicMs() - lastMs >= quietToResolveMs

  return {
    take(refusal, source) {
      const hardware = unknownHardware(refusal)
      if (hardware === null) return
      const machine = nameOf(hardware)
      const nowMs = core.clock.monotonicMs()
      const times = withFailure(failures.get(machine) ?? [], nowMs)
      remember(machine, times)
      if (times.length < failuresToAlert) return
      if (isQuiet()) forget()
      lastMs = nowMs
      if (repeated.size < mostMachines) repeated.add(machine)
      raise(hardware, source)
    },
    sweep: (leading) =>
      reconcileSource(leading, alerts, {
        kinds: ['unknown_hardware'],
        // Raised when they are received.
        wanted: () => [],
        over: (unwanted) => {
          if (!isQuiet()) return []
          forget()
          return unwanted
        },
      }),
    async settled() {
      await raising
    },
  }
}

/** The journal has no more addresses of one refusal than these, and the refusals of other replicas come through it. */
const macsInJournal = 8

const nameOf = ({ macs, bmcSerial }: HardwareIdentity): string =>
  [...macs.slice(0, macsInJournal), bmcSerial ?? ''].join()
