// Revocation leaves a tombstone: the epoch is denied, the keys it had of late are banned for ever, and only a new registration goes on
// from here, in a new epoch.

import { isoTime } from '#platform/clock.ts'
import {
  type Denial,
  type KeyBan,
  type RevocationReason,
  denialOfEpoch,
  epochDenialKey,
  everySlot,
  slotsOf,
} from '#domain/core/certificate.ts'
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
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { counted } from '#domain/core/in-words.ts'
import type { Node, NodeId, Slot } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type BanFact = { readonly spki: string; readonly row: Row<KeyBan> | null }

export type RevokeFacts = NodeFacts & {
  readonly reason: string
  readonly domain: Row<DomainSettings>
  /** Certificates the node had besides those in its slots. */
  readonly certificates: readonly Pick<Slot, 'spki' | 'notAfterMs'>[]
  /** For each of their keys, whether it is banned already. */
  readonly bans: readonly BanFact[]
  /** Other nodes that lose a certificate because they have one of the keys too; `extraParts` denies it. */
  readonly alsoCut?: readonly NodeId[]
  /** The reason as verifiers of its certificates get it; the operator's own words are not for them. */
  readonly reasonCode?: RevocationReason
  /** What denies its epoch already. */
  readonly formerDenial?: Row<Denial> | null
  /** What goes with its identity: allocations, its WireGuard key and address, the receipt. */
  readonly extraParts?: ChangePart
}

export const decideRevoke = (facts: RevokeFacts): NodeDecided | Refusal => {
  const { node, domain, by, nowMs, alsoCut = [], reasonCode = 'unspecified' } = facts
  const { value } = node
  if (value.membership.kind === 'revoked') return refuse('NODE_REVOKED', `${value.id} has been revoked already`)
  const reason = boundedText(facts.reason)
  const slots = slotsOf(value)
  const certificates = [...(slots === null ? [] : everySlot(slots)), ...facts.certificates]
  const banned = keysBanned(
    certificates.map(({ spki }) => spki),
    facts.bans,
    reason,
    nowMs,
  )
  const tombstone: Node = {
    ...value,
    membership: { kind: 'revoked', sinceMs: nowMs, reason, by: by.actor },
    assignment: null,
    drain: 'none',
    allocations: 0,
    wireguard: null,
    conditions: [],
    approvals: [],
    // The recovery credential stays in the row: its holder gets NODE_REVOKED, and anonymous callers do not.
    repair: null,
    rehearsal: null,
  }
  const credential = value.recovery?.credential
  const body = {
    ...{ host_id: value.id, revoked_by: by.actor, reason, timestamp: isoTime(nowMs) },
    // Only this entry names them: ban and denial can be restored from it after their rows were deleted.
    ...(credential?.kind === 'key' ? { recovery_key: `SHA256:${credential.spki}` } : {}),
    ...(reasonCode === 'unspecified' ? {} : { reason_code: reasonCode }),
    ...(alsoCut.length === 0 ? {} : { also_cut: alsoCut.slice(0, mostNamed), also_cut_count: alsoCut.length }),
  }
  return nodeDecided(
    node,
    tombstone,
    [entry(by, nowMs, 'host.revoked', { node: value.id, epoch: value.epoch }, body)],
    mergeParts([
      { reads: [readOf('domain', 'domain', domain)] },
      epochDenied(facts, `revoked: ${reason}`, reasonCode),
      banned,
      facts.extraParts ?? {},
    ]),
  )
}

/** In one entry. */
const mostNamed = 100

const epochDenied = (facts: RevokeFacts, why: string, reason: RevocationReason): ChangePart => {
  const { node, domain, certificates, formerDenial = null, nowMs: atMs } = facts
  const { id, epoch } = node.value
  const toleranceMs = domain.value.clockToleranceMs
  const denial = denialOfEpoch(node.value, { toleranceMs, atMs, why, reason })
  if (denial !== null) {
    const untilMs = Math.max(denial.untilMs, ...certificates.map(({ notAfterMs }) => notAfterMs + toleranceMs))
    return { writes: [{ put: 'denial', value: { ...denial, untilMs } }] }
  }
  // A quarantine has denied it, for as long as it takes, and did not know the reason.
  if (formerDenial === null || reason === 'unspecified') return {}
  return {
    reads: [readOf('denial', epochDenialKey(id, epoch), formerDenial)],
    writes: [{ put: 'denial', value: { ...formerDenial.value, why, reason } }],
  }
}

const keysBanned = (keys: readonly string[], facts: readonly BanFact[], why: string, atMs: number): ChangePart => {
  const knownBans = new Map(facts.map(({ spki, row }) => [spki, row]))
  const fresh = [...new Set([...keys, ...knownBans.keys()])].filter((spki) => (knownBans.get(spki) ?? null) === null)
  return {
    reads: facts.map(({ spki, row }) => readOf('key-ban', spki, row)),
    writes: fresh.map((spki) => ({ put: 'key-ban', value: { spki, why, atMs } })),
  }
}

export type DecommissionFacts = Omit<RevokeFacts, 'reason' | 'reasonCode'> & {
  readonly force: boolean
  /**
   * What people would lose: its allocations, which `extraParts` releases. The channel of the agent is not counted: every node
   * in service has one, so that would say nothing.
   */
  readonly allocations: number
}

export const decideDecommission = ({ force, allocations, ...facts }: DecommissionFacts): NodeDecided | Refusal => {
  const { id, membership } = facts.node.value
  if (allocations > 0 && !force && membership.kind !== 'revoked') {
    return refuse('NODE_STATE_CONFLICT', inUse(id, allocations))
  }
  return decideRevoke({ ...facts, reason: 'decommissioned', reasonCode: 'cessation-of-operation' })
}

/** What would become of it. */
const inUse = (id: string, allocations: number): string =>
  `${id} is in use: ${counted(allocations, 'allocation')} running; ` +
  'drain it first, or, to take the allocations from their owners and revoke the identity for good: ' +
  `muster node decommission ${id} --force`
