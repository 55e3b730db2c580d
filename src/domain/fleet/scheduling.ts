// Whether work may be placed on a node. Operators ask for a drain (drain.ts); the rest is derived, always with its reasons.

import type { ConditionName, Node, Condition } from '#domain/core/node.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import { decideClear, decideRaise, reconcileConditions, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { ownCheck, unhealthyBy, type CheckFailure } from './overlay-shown.ts'

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
  // A caller that knows an address can try to take an identity: the attempt must not take work from the holder.
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
  // New work would start on a configuration that was not asked for.
  config_drift: true,
  // Work on the node relies on the services of its vCluster.
  service_failed: true,
  wireguard_failed: true,
  // The node itself works; the program says so, if it cannot go on.
  output_failed: false,
  // Advisory: a claim of another domain never takes work away here.
  active_elsewhere: false,
}

export const isSchedulable = (node: Node): boolean => schedulingOf(node).state === 'schedulable'

export const schedulingOf = (node: Node): Scheduling => {
  const active = node.membership.kind === 'active'
  const known = node.membership.kind !== 'revoked'
  const reasons = [
    ...(node.drain === 'none' ? [] : [node.drain]),
    ...(active ? [] : [`not active: ${node.membership.kind}`]),
    ...(known && node.assignment === null ? ['not assigned to a vCluster (maintenance mode)'] : []),
    ...node.conditions.map(({ name }) => name).filter((name) => blocksScheduling[name]),
    // One part that could not be cleaned blocks the whole machine.
    ...node.machine.slots
      .filter(({ state }) => state === 'cleanup_blocked')
      .map(({ name, state }) => `slot ${name}: ${state}`),
    ...provisioningReasons(node),
  ]
  // A drained machine is expected to go away; one that goes away while it drains is not.
  if (node.drain === 'drained') return { state: 'drained', reasons }
  if (node.drain === 'draining' && active) return { state: 'draining', reasons }
  return { state: reasons.length === 0 ? 'schedulable' : 'unavailable', reasons }
}

/** A machine that an adapter is still installing, or takes back, has no place for work. */
const provisioningReasons = ({ provisioning }: Node): readonly string[] =>
  provisioning === null || provisioning.state === 'deployed' ? [] : [`provisioning: ${provisioning.state}`]

// Which entries of the journal a scheduler looks up a node for. Everything about a node that is not known to leave its
// scheduling as it was: a kind of entry that is added later is looked up once too often, never missed.

const leavesSchedulingAlone: ReadonlySet<EntryType> = new Set<EntryType>([
  'enrollment_token.created',
  'enrollment_token.used',
  'enrollment_token.revoked',
  'node.recovery_requested',
  'node.repair_evidence',
  'node.recoverable',
  'node.unrecoverable',
  'alert.raised',
  'alert.acknowledged',
  'alert.resolved',
  'refused',
  'refusals.counted',
  'receipt.effective',
  'receipt.settled',
])

export const isSchedulingNews = ({ node, type }: Pick<JournalEntry, 'node' | 'type'>): boolean =>
  node !== null && !leavesSchedulingAlone.has(type)

const changesAssignment: ReadonlySet<EntryType> = new Set<EntryType>([
  'node.assigned',
  'node.unassigned',
  'node.moved',
  'host.revoked',
])

/** A watch of one vCluster gets this too: the node may just have left it. */
export const mayHaveLeft = ({ type }: Pick<JournalEntry, 'type'>): boolean => changesAssignment.has(type)

// What health checkers say of a node. An unhealthy one keeps its identity and gets no new work.

export type HealthReport =
  | { readonly state: 'unhealthy'; readonly reason: string; readonly evidence: Condition['evidence'] }
  | { readonly state: 'healthy' }

export type HealthFacts = NodeFacts & {
  readonly report: HealthReport
  /** The checks of the agent's own that fail now (overlay-shown.ts). */
  readonly failedChecks: readonly CheckFailure[]
}

/**
 * A checker says the same again and again: only what is new is written. The report of an operator outlives the checks of the agent's
 * own; when it is taken back, those count again.
 */
export const decideHealth = ({ report, failedChecks, ...facts }: HealthFacts): NodeDecided | Unchanged | Refusal => {
  const { membership, conditions } = facts.node.value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const was = conditions.find(({ name }) => name === 'unhealthy')
  const byOwnCheck = was !== undefined && was.evidence[ownCheck] !== undefined
  const own = unhealthyBy(failedChecks)
  if (report.state === 'unhealthy') {
    const said = { ...facts, name: 'unhealthy' as const, reason: report.reason, evidence: report.evidence }
    return byOwnCheck ? replaced(facts, said) : decideRaise(said)
  }
  if (byOwnCheck && own !== null)
    return refuse('NODE_STATE_CONFLICT', `${own.reason} on the node: it is healthy again when they pass`)
  return own === null ? decideClear({ ...facts, name: 'unhealthy' }) : replaced(facts, own)
}

const replaced = (facts: NodeFacts, by: Pick<Condition, 'name' | 'reason' | 'evidence'>): NodeDecided | Unchanged =>
  reconcileConditions({ ...facts, about: [by.name], newestReason: [by.name], reported: [by] })
