// For which join string and machine an enrollment request was made. A request that was kept but never answered may have
// been copied with an image: on another machine, or with another join string, its keys are not used.

import { sha256Hex } from '#platform/bytes.ts'
import { readMachineId } from '#platform/hardware.ts'
import { formatJoinString, type JoinString } from '#wire/core/join-string.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { hardwareReport, systemReport } from '#agent/core/hardware-report.ts'

export type MadeFor = {
  /** Hashes: a join string is a secret, and a machine id is not for others to read. */
  readonly join: string
  readonly machine: string | null
  readonly macs: readonly string[]
  readonly serial: string | null
}

export const madeForNow = (config: Pick<AgentConfig, 'hardwareFile'>, join: JoinString): MadeFor => {
  const { macs, bmc_serial: serial } = (hardwareReport(config.hardwareFile) ?? systemReport()).hardware_identity
  const id = readMachineId()
  return {
    join: sha256Hex(`muster-join1\n${formatJoinString(join)}`),
    machine: id === null ? null : sha256Hex(`muster-made-for1\n${id}`),
    macs,
    serial,
  }
}

/**
 * Why the keys of a request are not to be used here; null: it is the same request, to be repeated as it is (ruling 4). A
 * fact that is missing on either side says nothing, and one network card of several may have been replaced: a request that
 * was sent must not be lost to that. The machine id alone is not enough, because images often share it.
 */
export const madeForAnother = (kept: MadeFor | null, now: MadeFor): 'join string' | 'machine' | null => {
  if (kept === null) return null
  if (kept.join !== now.join) return 'join string'
  const differs = (one: string | null, other: string | null): boolean => one !== null && other !== null && one !== other
  if (differs(kept.machine, now.machine) || differs(kept.serial, now.serial)) return 'machine'
  const comparable = kept.macs.length > 0 && now.macs.length > 0
  return comparable && !kept.macs.some((mac) => now.macs.includes(mac)) ? 'machine' : null
}
