// The evidence that distinguishes this process and machine from another one with the same identity.

import { sha256Hex } from '#platform/bytes.ts'
import { evidenceHeader, formatEvidence, type AgentEvidence } from '#wire/core/agent-evidence.ts'
import { readMachineId } from '#platform/hardware.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { musterVersion as agentVersion } from '#platform/this-process.ts'
import { hardwareReport, systemReport } from '#agent/core/hardware-report.ts'
import type { Identity } from '#agent/state/credentials.ts'

type EvidenceSource = Pick<AgentParts, 'instance' | 'config' | 'keeper'>

/** Read anew each time, which is a few small files a few times an hour: hardware gets replaced under a running agent. */
export const agentEvidence = (
  agent: EvidenceSource,
  domain: string = agent.keeper.credentials().identity?.domain ?? '',
): AgentEvidence => {
  const id = readMachineId()
  return {
    instance: agent.instance,
    hardware: (hardwareReport(agent.config.hardwareFile) ?? systemReport()).hardware_identity,
    // Hashed with the domain: machine-id(5) asks that it is never shown to a network as it is.
    machine: id === null ? null : sha256Hex(`muster-machine1\n${domain}\n${id}`),
    agent_version: agentVersion,
  }
}

/** For every call and channel; empty for a plane that does not understand it. */
export const evidenceHeaders = (
  agent: EvidenceSource,
  identity: Pick<Identity, 'understands' | 'domain'>,
): Readonly<Record<string, string>> =>
  identity.understands.includes('evidence')
    ? { [evidenceHeader]: formatEvidence(agentEvidence(agent, identity.domain)) }
    : {}
