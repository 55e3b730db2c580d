// A node as operators see it.

import type { IssuerId } from '#domain/core/node.ts'
import type { Static } from 'typebox'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { explainNode } from '#domain/node/explain-node.ts'
import type { Condition, HardwareFacts, Node, Provisioning, Slot } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { knownHardware } from '#domain/core/reported-hardware.ts'
import type { Recoverability } from '#domain/core/recoverability.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'
import { slotsOf, type SlotName } from '#domain/core/certificate.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import { bareName } from '#domain/programs/name-claim.ts'
import type { OutputStanding } from '#domain/programs/output-standing.ts'
import { takesTasks, type OpenSession } from '#plane/core/open-channels.ts'
import type { Observation } from '#plane/store/contract/store.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import type { CertificateView, ConditionView, NodeDetail, NodeView, ProvisioningView } from '#wire/node/node-api.ts'
import type { OutputStandingView } from '#wire/programs/programs-api.ts'
import { evidenceView, repairView } from '#wire/node/node-evidence.ts'
import { wireguardView, type WireguardState } from '#wire/network/wireguard-view.ts'

/** What is seen of a node besides its row. */
export type Sighting = {
  readonly observed: Observation
  readonly connected: boolean
  readonly recoverability: Recoverability
}

export const nodeView = (node: Node, { observed, connected, recoverability }: Sighting): NodeView => {
  const slots = slotsOf(node)
  const { state, reasons } = schedulingOf(node)
  return {
    id: node.id,
    state: node.membership.kind,
    membership: node.membership.kind,
    since: isoTime(node.membership.sinceMs),
    profile: node.profile,
    epoch: node.epoch,
    assurance: node.assurance,
    vcluster: node.assignment,
    scheduling: { state, reasons: [...reasons] },
    provisioning: node.provisioning === null ? null : provisioningView(node.provisioning),
    tags: [...node.machine.tags],
    allocations: node.allocations,
    cert_not_after: slots === null ? null : isoTime(slots.current.notAfterMs),
    channel_open: connected,
    last_seen: isoTimeOrNull(observed.lastSeenMs),
    agent_version: observed.agentVersion,
    conditions: node.conditions.map(conditionView),
    recoverable: { proven: recoverability.recoverable, why: recoverability.why },
    ...(node.unreadable === undefined ? {} : { unreadable: node.unreadable }),
  }
}

export type DetailFacts = Sighting & {
  readonly sessions: readonly OpenSession[]
  readonly profile: Profile
  /** The one it is in. */
  readonly vcluster: VCluster | null
  readonly domain: DomainSettings
  readonly wireguard: WireguardState
  readonly outputs: readonly OutputStanding[]
  /** Of who signs under an authority. */
  readonly signerOf: (authority: IssuerId) => string
  readonly nowMs: number
}

export const nodeDetail = (node: Node, facts: DetailFacts): NodeDetail => ({
  ...nodeView(node, facts),
  why: whyOf(node, facts),
  registered_at: isoTime(node.registeredAtMs),
  registered_by: node.registeredBy,
  hardware: { macs: [...node.hardware.macs], bmc_serial: node.hardware.bmcSerial },
  ...reportedHardwareView(node),
  facts: node.facts === null ? null : factsView(node.facts),
  certificates: certificatesView(node),
  approvals: node.approvals.map(({ by, atMs }) => ({ by, at: isoTime(atMs) })),
  agent_version: facts.observed.agentVersion,
  source: facts.observed.source,
  config_revision: facts.observed.configRevision,
  sessions: facts.sessions.map(({ number, sinceMs, serial }) => ({ number, since: isoTimeOrNull(sinceMs), serial })),
  ...takesTasksView(facts.sessions),
  vcluster_revision: facts.vcluster === null ? null : facts.vcluster.revision,
  overlay: facts.observed.overlay,
  not_reported: notReported(facts),
  capabilities: facts.observed.capabilities,
  evidence: evidenceView(node, facts.observed.report),
  repair: repairView(node.repair),
  wireguard: wireguardView(node, facts.wireguard),
  scrape_address: node.scrapeAddress,
  programs: facts.outputs.map((one) => standingView(one, facts)),
})

const takesTasksView = (sessions: readonly OpenSession[]): Pick<NodeDetail, 'takes_tasks'> => {
  const takes = takesTasks(sessions)
  return takes === null ? {} : { takes_tasks: takes }
}

const standingView = (
  { output, state, leaf, shown, why }: OutputStanding,
  { signerOf }: DetailFacts,
): OutputStandingView => ({
  output,
  state,
  serial: leaf?.serial ?? null,
  not_after: leaf === null ? null : isoTime(leaf.notAfterMs),
  issuer: leaf === null ? null : signerOf(leaf.issuer),
  names: (leaf?.names ?? []).map(bareName),
  place: shown?.place ?? null,
  serial_in_place: shown?.serial ?? null,
  why,
})

/** Services and checks, in words. Nothing where its agent has said nothing at all. */
const notReported = ({ vcluster, observed }: DetailFacts): string[] => {
  const { overlay } = observed
  if (vcluster === null || overlay === null) return []
  const isSaid = (said: readonly { readonly name: string }[] | undefined, name: string): boolean =>
    said?.some((one) => one.name === name) === true
  return [
    ...vcluster.overlay.services
      .filter(({ name }) => !isSaid(overlay.services, name))
      .map(({ name }) => `service ${name}`),
    ...vcluster.overlay.checks.filter(({ name }) => !isSaid(overlay.checks, name)).map(({ name }) => `check ${name}`),
  ]
}

/** Sentences: its state, and the reason. */
export const whyOf = (node: Node, { profile, domain, connected, observed, nowMs }: DetailFacts): string[] =>
  explainNode({
    ...{ node, profile, domain, nowMs },
    channelOpen: connected,
    lastSeenMs: observed.lastSeenMs,
  })

const certificatesView = (node: Node): Static<typeof CertificateView>[] => {
  const slots = slotsOf(node)
  if (slots === null) return []
  const { current, pending, retired } = slots
  return [
    certificateView('current', current),
    ...(pending === null ? [] : [certificateView('pending', pending)]),
    ...(retired === null ? [] : [certificateView('retired', retired.slot)]),
  ]
}

const certificateView = (slot: SlotName, certificate: Slot): Static<typeof CertificateView> => ({
  slot,
  issuer: certificate.issuer,
  serial: certificate.serial,
  fingerprint: `sha256:${certificate.sha256}`,
  sha256: certificate.sha256,
  issued_at: isoTime(certificate.issuedAtMs),
  not_after: isoTime(certificate.notAfterMs),
})

const conditionView = ({ name, sinceMs, reason, evidence }: Condition): Static<typeof ConditionView> => ({
  name,
  since: isoTime(sinceMs),
  reason,
  evidence: { ...evidence },
})

const provisioningView = ({ state, detail, sinceMs, by }: Provisioning): Static<typeof ProvisioningView> => ({
  state,
  detail,
  since: isoTime(sinceMs),
  by,
})

const reportedHardwareView = (node: Node): Pick<NodeDetail, 'reported_hardware'> => {
  const known = knownHardware(node)
  return known === null ? {} : { reported_hardware: { macs: [...known.macs], bmc_serial: known.bmcSerial } }
}

const factsView = ({ cpuCores, memoryBytes, diskBytes, arch }: HardwareFacts): NonNullable<NodeDetail['facts']> => ({
  cpu_cores: cpuCores,
  memory_bytes: memoryBytes,
  disk_bytes: diskBytes,
  arch,
})
