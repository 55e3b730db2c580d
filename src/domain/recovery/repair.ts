// Repair: an operator's emergency credential puts a node in quarantine, lets it have a new identity there, and keeps it there
// until it has shown that it is well.

import { isoTime } from '#platform/clock.ts'
import {
  readOf,
  type Row,
  boundedText,
  entry,
  nodeDecided,
  mergeParts,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { isFromFuture, denialOfEpoch } from '#domain/core/certificate.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { durationWords } from '#domain/core/in-words.ts'
import { hardwareMatches, isBlank } from '#domain/core/hardware-identity.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { HardwareIdentity, Node, Repair, RepairEvidence } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { drainEnded, quarantinedNode } from '#domain/core/quarantined-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { isOtherMachine, knownHardware } from '#domain/core/reported-hardware.ts'

export type RepairBundleFacts = NodeFacts & {
  readonly reason: string
  readonly id: string
  /** Of the secret, SHA-256, hex. */
  readonly hash: string
  readonly expiresAtMs: number
  readonly domain: Row<DomainSettings>
  /** What goes with the identity it has now: its allocations. */
  readonly extraParts?: ChangePart
}

/** A bundle made before is void from here on, and so is what was recovered with it. */
export const decideRepairBundle = (facts: RepairBundleFacts): NodeDecided | Refusal => {
  const { node, domain, by, nowMs } = facts
  const { value } = node
  const { membership } = value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const reason = boundedText(facts.reason)
  const denial = denialOfEpoch(value, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: `to be repaired: ${reason}`,
    reason: 'unspecified',
  })
  const fenced =
    membership.kind === 'quarantined'
      ? { ...value, membership: { ...membership, slots: null }, rehearsal: null }
      : quarantinedNode(value, `to be repaired: ${reason}`, by, nowMs)
  const { id, hash, expiresAtMs } = facts
  const repair: Repair = {
    id,
    hash,
    by: by.actor,
    reason,
    issuedAtMs: nowMs,
    expiresAtMs,
    usedBy: null,
    evidence: null,
  }
  const about = { node: value.id, epoch: value.epoch }
  const voids = value.repair === null ? null : value.repair.id
  const issued = entry(by, nowMs, 'node.repair_bundle_issued', about, {
    bundle: id,
    reason,
    expires_at: isoTime(expiresAtMs),
    voids,
  })
  const identity: ChangePart = {
    reads: [readOf('domain', 'domain', domain)],
    writes: denial === null ? [] : [{ put: 'denial', value: denial }],
  }
  return nodeDecided(
    node,
    { ...fenced, repair },
    [...endOf(facts, reason, denial !== null), issued],
    mergeParts([identity, facts.extraParts ?? {}]),
  )
}

/** How the journal says what ends: an identity by quarantine, or an earlier repair. */
const endOf = ({ node, by, nowMs }: RepairBundleFacts, reason: string, hadSlots: boolean): readonly EntryDraft[] => {
  const { id, epoch, membership } = node.value
  if (membership.kind !== 'quarantined') {
    const body = { reason: `to be repaired: ${reason}`, was: membership.kind }
    return [entry(by, nowMs, 'node.quarantined', { node: id, epoch }, body), ...drainEnded(node.value, by, nowMs)]
  }
  if (!hadSlots) return []
  const body = { was: membership.kind, superseded: 'an earlier repair', by_epoch: null }
  return [entry(by, nowMs, 'node.superseded', { node: id, epoch }, body)]
}

/** An operator has already decided for this machine, so neither counter nor budget nor other holders are checked. */
export const repairBarred = (
  { node, domain, nowMs }: Pick<NodeFacts, 'node' | 'nowMs'> & { readonly domain: Row<DomainSettings> },
  hash: string,
): Refusal | null => {
  const { repair, membership } = node.value
  if (repair?.hash !== hash) return refuse('REPAIR_TOKEN_INVALID')
  if (repair.usedBy !== null) return refuse('REPAIR_TOKEN_INVALID', 'it has been used')
  if (nowMs >= repair.expiresAtMs) return refuse('REPAIR_TOKEN_INVALID', 'it has expired')
  if (isFromFuture(repair.issuedAtMs, nowMs, domain.value.clockToleranceMs))
    return refuse('REPAIR_TOKEN_INVALID', 'it was made by a clock that was ahead')
  return membership.kind === 'quarantined'
    ? null
    : refuse('REPAIR_TOKEN_INVALID', 'the node is no longer in quarantine')
}

/** Keeps the bundle in the store with the key that it was used for; what the machine shows now counts. */
export const usedRepair = (repair: Repair | null, usedBy: NonNullable<Repair['usedBy']>): Repair | null =>
  repair === null ? null : { ...repair, usedBy, evidence: null }

export type RepairCheck = RepairEvidence['checks'][number]

export type RepairObserved = {
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  /** As the repaired machine reports it. */
  readonly hardware: HardwareIdentity
  readonly clockSkewMs: number
  readonly identityWritable: boolean
  readonly diskReserve: boolean
}

/** What a repaired machine has to show. */
export const repairChecksOf = (observed: RepairObserved): readonly RepairCheck[] => {
  const { node, profile, domain, hardware, clockSkewMs } = observed
  const { rehearsal } = node
  const skewed = Math.abs(clockSkewMs) > domain.clockToleranceMs
  const rehearsed = rehearsal?.outcome === 'passed' && rehearsal.epoch === node.epoch
  const noRecovery = profile.recovery.mode === 'deny'
  return [
    hardwareCheck(node, hardware),
    {
      name: 'clock',
      ok: !skewed,
      detail: skewed ? `wrong by ${durationWords(Math.abs(clockSkewMs))}` : 'within tolerance',
    },
    {
      name: 'persisted',
      ok: observed.identityWritable && !node.conditions.some(({ name }) => name === 'not_persisted'),
      detail: observed.identityWritable ? 'its state can be written' : 'its state cannot be written',
    },
    {
      name: 'disk',
      ok: observed.diskReserve,
      detail: observed.diskReserve ? 'the reserve is there' : 'the reserve is missing',
    },
    {
      name: 'rehearsal',
      ok: rehearsed || noRecovery,
      detail: noRecovery ? 'its profile has no recovery' : rehearsed ? 'passed' : 'its recovery has not been rehearsed',
    },
  ]
}

/** What an operator registered decides; else what the node itself reported before. */
const hardwareCheck = (node: Node, shown: HardwareIdentity): RepairCheck => {
  const name = 'hardware'
  if (!isBlank(node.hardware)) {
    return hardwareMatches(node.hardware, shown)
      ? { name, ok: true, detail: 'as registered' }
      : { name, ok: false, detail: 'not the hardware that is registered' }
  }
  const known = knownHardware(node)
  if (known === null) return { name, ok: true, detail: 'none is registered' }
  return isOtherMachine(known, shown)
    ? { name, ok: false, detail: 'not the hardware that it was enrolled with' }
    : { name, ok: true, detail: 'as enrolled' }
}

export type RepairEvidenceFacts = NodeFacts & { readonly checks: readonly RepairCheck[] }

const mostChecks = 16

/** Accepted only from the identity that the repair made. */
export const decideRepairEvidence = ({ node, checks, by, nowMs }: RepairEvidenceFacts): NodeDecided | Unchanged => {
  const { value } = node
  const { repair, membership } = value
  const awaited =
    membership.kind === 'quarantined' && membership.slots !== null && repair?.usedBy?.epoch === value.epoch
  if (!awaited || repair === null || sameOutcome(repair.evidence, checks)) return { kind: 'unchanged' }
  const evidence: RepairEvidence = {
    passed: checks.length > 0 && checks.every(({ ok }) => ok),
    atMs: nowMs,
    checks: checks.slice(0, mostChecks).map(({ name, ok, detail }) => ({
      name: boundedText(name, 40),
      ok,
      detail: boundedText(detail, 128),
    })),
  }
  const shown: Node = { ...value, repair: { ...repair, evidence } }
  const body = {
    bundle: repair.id,
    passed: evidence.passed,
    checks: evidence.checks.map(({ name, ok, detail }) => `${name}: ${ok ? 'ok' : 'failed'}, ${detail}`),
  }
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(node, shown, [entry(by, nowMs, 'node.repair_evidence', about, body)])
}

/** Figures in the details change with every report; what counts is which checks passed. */
const sameOutcome = (evidence: RepairEvidence | null, checks: readonly RepairCheck[]): boolean =>
  evidence !== null && evidence.checks.map(outcome).join() === checks.slice(0, mostChecks).map(outcome).join()

const outcome = ({ name, ok }: RepairCheck): string => `${name}=${ok}`

export const failedChecks = ({ evidence }: Repair): readonly string[] =>
  evidence === null ? [] : evidence.checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)

/** Released with the identity of its repair: it returns by that, once, whatever its profile asks of an inactive node. */
export const releasedAfterRepair = ({ membership, repair, epoch }: Node): boolean =>
  membership.kind === 'inactive' && membership.slots !== null && repair?.usedBy?.epoch === epoch
