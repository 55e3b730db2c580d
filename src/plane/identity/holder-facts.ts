// Who holds an identity, as a decision about two of them takes it: whoever asks, whoever has a channel open, and who was
// last seen.

import type { HolderFacts } from '#domain/identity/duplicate.ts'
import type { Node } from '#domain/core/node.ts'
import { slotsOf } from '#domain/core/slots.ts'
import type { Observation } from '#plane/store/contract/store.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { LiveHolder } from './live-holder.ts'

/** `evidence` is null where an older agent asks. */
export const claimantFacts = (
  evidence: AgentEvidence | null,
  source: string | null,
  serial: string | null,
): HolderFacts => ({
  instance: evidence === null ? null : evidence.instance,
  source,
  macs: evidence === null ? [] : evidence.hardware.macs,
  bmcSerial: evidence === null ? null : evidence.hardware.bmc_serial,
  machine: evidence === null ? null : evidence.machine,
  serial,
  agentVersion: evidence === null ? null : evidence.agent_version,
})

export const liveHolderFacts = ({ evidence, source, serial }: LiveHolder): HolderFacts =>
  claimantFacts(evidence, source, serial)

/** Null: nothing was ever seen of it. */
export const lastSeenFacts = (node: Node, observed: Observation): HolderFacts | null => {
  const { lastSeenMs, source, agentVersion, report, evidence } = observed
  if (lastSeenMs === null) return null
  const slots = slotsOf(node)
  const serial = slots === null ? null : slots.current.serial
  if (evidence !== null) return claimantFacts(evidence, source, serial)
  return {
    instance: report === null ? null : report.instance,
    source,
    macs: node.hardware.macs,
    bmcSerial: node.hardware.bmcSerial,
    machine: null,
    serial,
    agentVersion,
  }
}
