// A node in quarantine, after an order of an operator, a repair, or two holders of its identity.

import { withoutConditions } from './conditions.ts'
import { entry, type Attribution } from './change.ts'
import type { EntryDraft } from './journal-entry.ts'
import type { Node } from './node.ts'

/** They go with the certificates; all others are evidence. */
const aboutCertificates = ['stuck_enrollment', 'cert_expiring', 'cert_expired', 'not_persisted'] as const

export const quarantinedNode = (node: Node, reason: string, by: Attribution, nowMs: number): Node => ({
  ...node,
  membership: { kind: 'quarantined', sinceMs: nowMs, reason, by: by.actor, slots: null },
  conditions: withoutConditions(node.conditions, aboutCertificates),
  approvals: [],
  // Its allocations are released with it (releaseAll), and that is all a drain waits for.
  allocations: 0,
  drain: node.drain === 'draining' ? 'drained' : node.drain,
  // What it had proved was proved for the identity it loses.
  repair: null,
  rehearsal: null,
})

/** What the journal says of a drain that this ends. */
export const drainEnded = ({ id, epoch, drain }: Node, by: Attribution, nowMs: number): readonly EntryDraft[] =>
  drain === 'draining' ? [entry(by, nowMs, 'node.drained', { node: id, epoch }, { was: drain })] : []
