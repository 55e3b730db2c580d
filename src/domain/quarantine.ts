// Quarantine takes a node's identity away at once and keeps its record for whoever looks into it. Only an operator ends it.

import { readOf, type Row } from './change.ts'
import { withoutConditions } from './conditions.ts'
import { boundedText, entry } from './decision.ts'
import type { DomainSettings } from './domain-settings.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from './node-change.ts'
import type { Node } from './node.ts'
import { refuse, type Refusal } from './refusal.ts'
import { denialOfEpoch } from './slots.ts'

export type QuarantineFacts = NodeFacts & { readonly reason: string; readonly domain: Row<DomainSettings> }

/** They go with the certificates; all others are evidence. */
const aboutCertificates = ['stuck_enrollment', 'cert_expiring', 'cert_expired', 'not_persisted'] as const

export const decideQuarantine = ({ node, reason, domain, by, nowMs }: QuarantineFacts): NodeDecided | Refusal => {
  const { value } = node
  if (value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (value.membership.kind === 'quarantined') {
    return refuse('NODE_QUARANTINED', `${value.id} is in quarantine already: ${value.membership.reason}`)
  }
  const why = boundedText(reason)
  // Null: it has no certificate, or its epoch is denied already.
  const denial = denialOfEpoch(value, domain.value.clockToleranceMs, `quarantined: ${why}`)
  const quarantined: Node = {
    ...value,
    membership: { kind: 'quarantined', sinceMs: nowMs, reason: why, by: by.actor, slots: null },
    conditions: withoutConditions(value.conditions, aboutCertificates),
    approvals: [],
  }
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(
    node,
    quarantined,
    [entry(by, nowMs, 'node.quarantined', about, { reason: why, was: value.membership.kind })],
    {
      reads: [readOf('domain', 'domain', domain)],
      writes: denial === null ? [] : [{ put: 'denial', value: denial }],
    },
  )
}

/** Its epoch stays denied: a released node comes back by joining anew. */
export const decideRelease = ({ node, by, nowMs }: NodeFacts): NodeDecided | Refusal => {
  const { value } = node
  if (value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (value.membership.kind !== 'quarantined') {
    return refuse('NODE_STATE_CONFLICT', `${value.id} is not in quarantine: it is ${value.membership.kind}`)
  }
  const released: Node = {
    ...value,
    membership: { kind: 'inactive', sinceMs: nowMs, slots: null },
    tenure: value.tenure + 1,
    // Whoever releases a node has judged what was suspected of it.
    conditions: withoutConditions(value.conditions, ['spoof_suspected', 'duplicate_identity']),
  }
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(node, released, [
    entry(by, nowMs, 'node.released', about, { quarantined_for: value.membership.reason }),
  ])
}
