// What the machine says of itself at enrollment: its identity finds the record, its facts are for operators.

import * as path from 'node:path'
import { Type } from 'typebox'
import { groupForFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import { readMachineFacts, readMachineIdentity } from '#platform/hardware.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { HardwareFactsBody, type EnrollRequest } from '#wire/enrollment/enroll-api.ts'
import { HardwareIdentityBody } from '#wire/core/agent-evidence.ts'

export type HardwareReport = Required<Pick<EnrollRequest, 'hardware_identity' | 'hardware_facts'>>

/** `{"macs": ["52:54:00:12:34:56"], "bmc_serial": "CZ1234", "facts": {...}}`; without facts the system is asked. */
const HardwareFile = Type.Object(
  { ...HardwareIdentityBody.properties, facts: Type.Optional(HardwareFactsBody) },
  { additionalProperties: false },
)

/** Null when a file was named and is not there, or is not one: then something is wrong with the machine's set-up. */
export const hardwareReport = (hardwareFile: string | null): HardwareReport | null => {
  if (hardwareFile === null) return systemReport()
  const report = jsonIn(hardwareFile)
  if (!matchesSchema(HardwareFile, report)) return null
  return {
    hardware_identity: { macs: report.macs, bmc_serial: report.bmc_serial },
    hardware_facts: report.facts ?? systemReport().hardware_facts,
  }
}

const jsonIn = (file: string): unknown => {
  try {
    return JSON.parse(readFileIfAny(file) ?? 'null')
  } catch {
    return null
  }
}

/**
 * `muster agent read-hardware --out FILE`: run by root before the agent, which may not read serial numbers. A machine can join by them, so
 * no other user may either. Returns who may.
 */
export const writeHardwareFile = (file: string): 'owner' | 'group' => {
  const { hardware_identity, hardware_facts } = systemReport()
  const group = groupForFolder(path.dirname(file))
  const text = JSON.stringify({ ...hardware_identity, facts: hardware_facts }, null, 1) + '\n'
  replaceFile(file, text, group === null ? 0o600 : 0o640, group)
  return group === null ? 'owner' : 'group'
}

export const systemReport = (): HardwareReport => {
  const identity = readMachineIdentity('/sys')
  const facts = readMachineFacts()
  return {
    hardware_identity: { macs: identity.macs.slice(0, 64), bmc_serial: identity.serial },
    hardware_facts: {
      cpu_cores: facts.cpuCores,
      memory_bytes: facts.memoryBytes,
      disk_bytes: facts.diskBytes,
      arch: facts.arch,
    },
  }
}

/** Network interfaces that are not in the report, each with why. */
export const passedOverInterfaces = (): readonly string[] => readMachineIdentity('/sys').passedOver
