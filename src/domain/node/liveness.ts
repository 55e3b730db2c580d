// What time does to a node: it lapses, it gets stuck, its certificates run out.

import { isoTime } from '#platform/clock.ts'
import { readOf, type Row, entry, nodeDecided, type NodeDecided, type NodeFacts } from '#domain/core/change.ts'
import { decideRaise, withoutConditions } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import { slotsOf } from '#domain/core/certificate.ts'

/** Nothing has happened yet, or it is in the store already. */
export type NotYet = { readonly kind: 'not-yet' }

const notYet: NotYet = { kind: 'not-yet' }

export type LapseFacts = NodeFacts & {
  /** When its last channel was last known to be alive; never earlier than the plane's own start. */
  readonly lastPresentMs: number
  readonly grace: Row<DomainSettings>
}

/** The caller has checked that no channel is open. */
export const decideLapse = ({ node, lastPresentMs, grace, by, nowMs }: LapseFacts): NodeDecided | NotYet => {
  const { value } = node
  if (value.membership.kind !== 'active') return notYet
  if (nowMs - lastPresentMs < grace.value.livenessGraceMs) return notYet
  const lapsed: Node = {
    ...value,
    membership: { kind: 'inactive', sinceMs: nowMs, slots: value.membership.slots },
    // An approval of an earlier return does not approve this one.
    approvals: [],
  }
  const body = { last_present: isoTime(lastPresentMs), grace_ms: grace.value.livenessGraceMs }
  return nodeDecided(node, lapsed, [entry(by, nowMs, 'node.lapsed', { node: value.id, epoch: value.epoch }, body)], {
    reads: [readOf('domain', 'domain', grace)],
  })
}

export type StuckFacts = NodeFacts & { readonly domain: Row<DomainSettings> }

export const decideStuck = ({ node, domain, by, nowMs }: StuckFacts): NodeDecided | NotYet => {
  const { membership } = node.value
  if (membership.kind !== 'enrolled' || nowMs - membership.sinceMs <= domain.value.stuckEnrollmentMs) return notYet
  const raised = decideRaise({
    node,
    name: 'stuck_enrollment',
    reason: 'its certificate was issued and has not been used',
    evidence: { enrolled_at: isoTime(membership.sinceMs), serial: membership.slots.current.serial },
    by,
    nowMs,
  })
  if (raised.kind === 'unchanged') return notYet
  const { change } = raised
  return { ...raised, change: { ...change, reads: [...change.reads, readOf('domain', 'domain', domain)] } }
}

/** The share of a certificate's lifetime that is left when an alert is due: its renewal was due long before. */
const lastPart = 1 / 4

/** Its certificate is running out and no successor has been issued. */
export const decideExpiring = ({ node, by, nowMs }: NodeFacts): NodeDecided | NotYet => {
  const { membership } = node.value
  if (membership.kind !== 'active') return notYet
  const { current, pending } = membership.slots
  const leftMs = current.notAfterMs - nowMs
  if (pending !== null || leftMs <= 0 || leftMs >= lastPart * (current.notAfterMs - current.issuedAtMs)) return notYet
  const raised = decideRaise({
    node,
    name: 'cert_expiring',
    reason: 'its certificate runs out and has not been renewed',
    evidence: { not_after: isoTime(current.notAfterMs), serial: current.serial },
    by,
    nowMs,
  })
  return raised.kind === 'unchanged' ? notYet : raised
}

/** Every certificate of the node has expired, or has been replaced and drained: it can no longer renew. */
export const decideExpired = ({ node, by, nowMs }: NodeFacts): NodeDecided | NotYet => {
  const slots = slotsOf(node.value)
  if (slots === null) return notYet
  const { current, pending, retired } = slots
  const latestMs = Math.max(current.notAfterMs, pending?.notAfterMs ?? 0, retired?.untilMs ?? 0)
  if (nowMs < latestMs) return notYet
  const ran = withoutConditions(node.value.conditions, ['cert_expiring'])
  const raised = decideRaise({
    node: { ...node, value: { ...node.value, conditions: ran } },
    name: 'cert_expired',
    reason: 'every certificate of the node has expired',
    evidence: { not_after: isoTime(latestMs) },
    by,
    nowMs,
  })
  return raised.kind === 'unchanged' ? notYet : raised
}
