// Quarantine ends a node's identity at once and keeps its row for investigation. Only an operator ends it.

import {
  readOf,
  type Row,
  boundedText,
  entry,
  nodeDecided,
  rowUnreadable,
  mergeParts,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { hasCondition, withoutConditions } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { FormerRevocation, Node } from '#domain/core/node.ts'
import { drainEnded, quarantinedNode } from '#domain/core/quarantined-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { failedChecks } from '#domain/recovery/repair.ts'
import { denialOfEpoch } from '#domain/core/certificate.ts'

export type QuarantineFacts = NodeFacts & {
  readonly reason: string
  /** Where its row was set back from a revocation. */
  readonly revokedBefore?: FormerRevocation | null
  readonly domain: Row<DomainSettings>
  /** What goes with its identity: the allocations it had, the receipt. */
  readonly extraParts?: ChangePart
}

export const decideQuarantine = ({
  node,
  reason,
  domain,
  extraParts = {},
  revokedBefore = null,
  by,
  nowMs,
}: QuarantineFacts): NodeDecided | Refusal => {
  const { value } = node
  if (value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (value.membership.kind === 'quarantined') {
    return refuse('NODE_QUARANTINED', `${value.id} is in quarantine already: ${value.membership.reason}`)
  }
  const why = boundedText(reason)
  // Null: it has no certificate, or its epoch is denied already.
  const denial = denialOfEpoch(value, {
    toleranceMs: domain.value.clockToleranceMs,
    atMs: nowMs,
    why: `quarantined: ${why}`,
    reason: 'unspecified',
  })
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(
    node,
    withFormer(quarantinedNode(value, why, by, nowMs), revokedBefore),
    [
      entry(by, nowMs, 'node.quarantined', about, { reason: why, was: value.membership.kind }),
      ...drainEnded(value, by, nowMs),
    ],
    mergeParts([
      {
        reads: [readOf('domain', 'domain', domain)],
        writes: denial === null ? [] : [{ put: 'denial', value: denial }],
      },
      extraParts,
    ]),
  )
}

const withFormer = (node: Node, revokedBefore: FormerRevocation | null): Node =>
  node.membership.kind === 'quarantined' && revokedBefore !== null
    ? { ...node, membership: { ...node.membership, revokedBefore } }
    : node

/**
 * Its epoch stays denied: a released node comes back by joining anew, or by recovering. A repaired one has a new epoch,
 * and comes back with that, once it has shown that it is well.
 */
export const decideRelease = ({ node, by, nowMs }: NodeFacts): NodeDecided | Refusal => {
  const { value } = node
  const { membership, repair } = value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (value.unreadable !== undefined) return rowUnreadable(value.id)
  if (membership.kind !== 'quarantined') {
    return refuse('NODE_STATE_CONFLICT', `${value.id} is not in quarantine: it is ${membership.kind}`)
  }
  const repaired = membership.slots !== null
  if (repaired && repair?.evidence?.passed !== true) return refuse('NODE_STATE_CONFLICT', evidenceMissing(value))
  const released: Node = {
    ...value,
    membership: { kind: 'inactive', sinceMs: nowMs, slots: membership.slots },
    tenure: value.tenure + 1,
    // Two machines had it: the one that is admitted next registers another.
    recovery: !repaired && hasCondition(value, 'duplicate_identity') ? null : value.recovery,
    // Kept until the repaired node has returned by it; an unused bundle ends here.
    repair: repaired ? repair : null,
    // The operator who releases a node has judged the suspicion.
    conditions: withoutConditions(value.conditions, ['spoof_suspected', 'duplicate_identity']),
  }
  const about = { node: value.id, epoch: value.epoch }
  const body = { quarantined_for: membership.reason, repaired }
  return nodeDecided(node, released, [entry(by, nowMs, 'node.released', about, body)])
}

const evidenceMissing = ({ id, repair }: Node): string => {
  const failed = repair === null ? [] : failedChecks(repair)
  return failed.length === 0
    ? `${id} has been repaired and has not shown its evidence yet`
    : boundedText(`the evidence of ${id} has not passed: ${failed.join('; ')}`)
}
