// A node as it is in quarantine, whoever put it there: an operator, a repair, or two holders of its identity.

import { withoutConditions } from './conditions.ts'
import type { Attribution } from './decision.ts'
import type { Node } from './node.ts'

/** They go with the certificates; all others are evidence. */
const aboutCertificates = ['stuck_enrollment', 'cert_expiring', 'cert_expired', 'not_persisted'] as const

export const quarantinedNode = (node: Node, reason: string, by: Attribution, nowMs: number): Node => ({
  ...node,
  membership: { kind: 'quarantined', sinceMs: nowMs, reason, by: by.actor, slots: null },
  conditions: withoutConditions(node.conditions, aboutCertificates),
  approvals: [],
  allocations: 0,
  // What it had proved was proved for the identity it loses.
  repair: null,
  rehearsal: null,
})
