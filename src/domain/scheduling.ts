// Whether work may be placed on a node. Operators ask for a drain; the rest is derived, always with its reasons.

import { entry } from './decision.ts'
import type { EntryType } from './journal-entry.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from './node-change.ts'
import type { ConditionName, Node } from './node.ts'
import { refuse, type Refusal } from './refusal.ts'

export type Scheduling = {
  readonly state: 'schedulable' | 'draining' | 'drained' | 'unavailable'
  /** Empty only when schedulable. */
  readonly reasons: readonly string[]
}

/** Whether a condition keeps new work away. */
export const blocksScheduling: Readonly<Record<ConditionName, boolean>> = {
  stuck_enrollment: true,
  cert_expiring: false,
  cert_expired: true,
  // Anybody who knows an address can try to take a place: trying must not take work away from whoever holds it.
  spoof_suspected: false,
  duplicate_identity: true,
  needs_approval: true,
  // It would be gone after the next restart, and the work with it.
  not_persisted: true,
  clock_skew: true,
  disk_full: true,
  endpoint_profile_drift: false,
  // Observability is dropped there; work would write the same disk full.
  node_observability_disk_pressure: true,
  recovery_enrollment_blocked: false,
  not_recoverable: false,
  unhealthy: true,
  overlay_failed: true,
  // What runs there is not what was asked for, and may still be the better place for running work.
  config_drift: true,
  wireguard_failed: true,
  // Advisory: another domain's word never takes work away here.
  active_elsewhere: false,
}

export const schedulingOf = (node: Node): Scheduling => {
  const active = node.membership.kind === 'active'
  const reasons = [
    ...(node.drain === 'none' ? [] : [node.drain]),
    ...(active ? [] : [`not active: ${node.membership.kind}`]),
    ...(node.assignment === null ? ['no vCluster: maintenance mode'] : []),
    ...node.conditions.map(({ name }) => name).filter((name) => blocksScheduling[name]),
  ]
  // A drained machine is expected to go away; one that goes away while it drains is not.
  if (node.drain === 'drained') return { state: 'drained', reasons }
  if (node.drain === 'draining' && active) return { state: 'draining', reasons }
  return { state: reasons.length === 0 ? 'schedulable' : 'unavailable', reasons }
}

export const decideDrain = (facts: NodeFacts): NodeDecided | Refusal =>
  facts.node.value.drain === 'none' ? drainTo(facts, 'draining', 'node.draining') : unfit(facts.node.value)

/** Nothing runs on the node any more. */
export const decideDrained = (facts: NodeFacts): NodeDecided | Refusal =>
  facts.node.value.drain === 'draining' ? drainTo(facts, 'drained', 'node.drained') : unfit(facts.node.value)

export const decideUndrain = (facts: NodeFacts): NodeDecided | Refusal =>
  facts.node.value.drain === 'none' ? unfit(facts.node.value) : drainTo(facts, 'none', 'node.undrained')

const drainTo = ({ node, by, nowMs }: NodeFacts, drain: Node['drain'], type: EntryType): NodeDecided | Refusal => {
  if (node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const about = { node: node.value.id, epoch: node.value.epoch }
  return nodeDecided(node, { ...node.value, drain }, [entry(by, nowMs, type, about, { was: node.value.drain })])
}

const unfit = (node: Node): Refusal => {
  if (node.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  return refuse(
    'NODE_STATE_CONFLICT',
    node.drain === 'none' ? `${node.id} is not draining` : `${node.id} is ${node.drain} already`,
  )
}
