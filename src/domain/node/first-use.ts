// What the use of a certificate changes: the first use confirms an enrollment, commits a renewal, or ends an absence.

import { approvalComplete } from '#domain/core/approval.ts'
import { readOf, type Row, entry, nodeDecided, type NodeDecided, type NodeFacts } from '#domain/core/change.ts'
import { withoutConditions } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { Node, Recovery, Slots } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Profile } from '#domain/core/profile.ts'
import { rotationConfirmed } from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { releasedAfterRepair } from '#domain/recovery/repair.ts'
import { promote, slotNameOf } from '#domain/core/certificate.ts'

export type FirstUseFacts = NodeFacts & {
  readonly principal: NodePrincipal
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
}

/** `nothing-new`: the certificate is in use already. */
export const decideFirstUse = (facts: FirstUseFacts): { readonly kind: 'nothing-new' } | NodeDecided | Refusal => {
  const { membership } = facts.node.value
  if (facts.node.value.epoch !== facts.principal.epoch) return refuse('CLIENT_CERT_DENIED')
  switch (membership.kind) {
    case 'registered':
      return refuse('CLIENT_CERT_DENIED')
    case 'quarantined':
      // After a repair: it may show its evidence, and stays where it is.
      return membership.slots !== null && slotUsed(facts, membership.slots) !== null
        ? { kind: 'nothing-new' }
        : refuse('NODE_QUARANTINED')
    case 'revoked':
      return refuse('NODE_REVOKED')
    case 'enrolled':
      return activate(facts, membership.slots, 'node.confirmed', { was: 'enrolled' })
    case 'active':
      return slotUsed(facts, membership.slots) === 'pending'
        ? activate(facts, membership.slots, 'node.renewal_confirmed', {}, membership.sinceMs)
        : { kind: 'nothing-new' }
    case 'inactive':
      return membership.slots === null ? refuse('CLIENT_CERT_DENIED') : comeBack(facts, membership.slots)
  }
}

const comeBack = (facts: FirstUseFacts, slots: Slots): NodeDecided | Refusal => {
  const { value } = facts.node
  const barred = releasedAfterRepair(value) ? null : notBack(value, facts.profile.value)
  if (barred !== null) return barred
  const awayMs = facts.nowMs - facts.node.value.membership.sinceMs
  return activate(facts, slots, 'node.returned', { lapsed_for_ms: awayMs })
}

/** What the profile says of a node that was away for longer than the grace. */
const notBack = (node: Node, profile: Profile): Refusal | null => {
  switch (profile.comeback.by) {
    case 'join':
      return refuse('REJOIN_REQUIRED')
    case 'approve':
      return approvalComplete(node, profile) ? null : refuse('APPROVAL_REQUIRED')
    case 'certificate':
      return null
  }
}

const slotUsed = (facts: FirstUseFacts, slots: Slots) =>
  slotNameOf(slots, facts.principal.credential.issuer, facts.principal.credential.serial)

/** Active, with the used certificate as the current one. */
const activate = (
  facts: FirstUseFacts,
  slots: Slots,
  type: EntryDraft['type'],
  body: EntryDraft['body'],
  sinceMs: number = facts.nowMs,
): NodeDecided | Refusal => {
  const { node, principal, profile, domain, by, nowMs } = facts
  const used = slotUsed(facts, slots)
  if (used === null) return refuse('SERIAL_MISMATCH')
  const promoted = used === 'pending' && slots.pending !== null
  const next: Slots = promoted ? promote(slots, slots.pending, nowMs + domain.value.drainMs) : slots
  const { recovery, conditions, membership } = node.value
  const present: Node = {
    ...node.value,
    membership: { kind: 'active', sinceMs, slots: next },
    approvals: [],
    conditions: withoutConditions(conditions, [
      'stuck_enrollment',
      'cert_expired',
      'needs_approval',
      ...(promoted || membership.kind === 'enrolled' ? (['cert_expiring'] as const) : []),
    ]),
    recovery: recovery === null ? null : resolved(recovery, next),
    repair: null,
  }
  // The last line of the story that a failure began.
  const story = { ...by, correlation: recovery?.episode ?? by.correlation }
  const { issuer, serial } = principal.credential
  const about = { node: node.value.id, epoch: principal.epoch, issuer, serial }
  const retired = promoted ? slots.current.serial : null
  return nodeDecided(node, present, [entry(story, nowMs, type, about, { ...body, retired_serial: retired })], {
    reads: [readOf('profile', profile.value.name, profile), readOf('domain', 'domain', domain)],
  })
}

/** The story of a recovery ends; a token that came with the certificate in use is the one its holder has. */
const resolved = (recovery: Recovery, { pending }: Slots): Recovery => ({
  ...recovery,
  episode: null,
  credential: pending === null ? rotationConfirmed(recovery.credential) : recovery.credential,
})
