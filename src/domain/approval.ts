// Approval: people decide whether a node that was gone may come back, whether one may recover, and that whoever holds an
// identity is the right one (rulings 3 and 6).

import { readOf, type Row } from './change.ts'
import { clearedEntry, hasCondition, withoutConditions } from './conditions.ts'
import { entry } from './decision.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from './node-change.ts'
import type { Node } from './node.ts'
import type { Profile } from './profile.ts'
import { refuse, type Refusal } from './refusal.ts'

export type ApproveFacts = NodeFacts & { readonly profile: Row<Profile> }

/** One person's yes: to a return, to one recovery more, or else to whoever holds the identity now. */
export const decideApprove = (facts: ApproveFacts): NodeDecided | Refusal => {
  const { node, profile, by, nowMs } = facts
  const { value } = node
  const unfit = notForApproval(value, profile.value)
  if (unfit !== null) return unfit
  if (value.membership.kind === 'active' && !waits(value)) return settled(facts)
  if (value.approvals.some((approval) => approval.by === by.actor)) {
    return refuse('NODE_STATE_CONFLICT', `${by.actor} has approved ${value.id} already; another person has to`)
  }
  if (recoveryApproved(value, profile.value)) {
    return refuse('NODE_STATE_CONFLICT', `${value.id} has all approvals it needs`)
  }
  const approved: Node = { ...value, approvals: [...value.approvals, { by: by.actor, atMs: nowMs }] }
  const complete = recoveryApproved(approved, profile.value)
  const body = { approvals: approved.approvals.length, needed: peopleAsked(profile.value), complete }
  return nodeDecided(
    node,
    complete ? nothingHeldAgainst(approved) : approved,
    [entry(by, nowMs, 'node.approved', { node: value.id, epoch: value.epoch }, body)],
    { reads: [readOf('profile', profile.value.name, profile)] },
  )
}

/** That somebody else holds an identity, or wants it. */
const suspicions = ['duplicate_identity', 'spoof_suspected'] as const

/**
 * It is on record who was suspected, and the other is gone: the holder goes on with what it has. Should the other come
 * again, it is refused again, and that is on record again. No yes to anything that is asked later.
 */
const settled = ({ node, by, nowMs }: ApproveFacts): NodeDecided => {
  const { value } = node
  const over = value.conditions.filter(({ name }) => suspicions.some((suspicion) => suspicion === name))
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(node, { ...value, conditions: withoutConditions(value.conditions, suspicions) }, [
    entry(by, nowMs, 'node.approved', about, { approvals: 1, needed: 1, complete: true }),
    ...over.map((condition) => clearedEntry(value, condition, by, nowMs)),
  ])
}

const nothingHeldAgainst = (node: Node): Node => ({
  ...node,
  conditions: withoutConditions(node.conditions, ['needs_approval']),
  recovery: node.recovery === null ? null : { ...node.recovery, denied: null },
})

const notForApproval = (node: Node, profile: Profile): Refusal | null => {
  switch (node.membership.kind) {
    case 'revoked':
      return refuse('NODE_REVOKED')
    case 'quarantined':
      return refuse('NODE_QUARANTINED')
    case 'registered':
    case 'active':
      if (waits(node) || (node.membership.kind === 'active' && isSuspected(node))) return null
      return refuse('NODE_STATE_CONFLICT', `${node.id} is ${node.membership.kind} and waits for no approval`)
    case 'enrolled':
    case 'inactive':
      break
  }
  if (waits(node) || profile.comeback.by === 'approve' || profile.recovery.mode === 'approve') return null
  return refuse('NODE_STATE_CONFLICT', `profile ${profile.name} asks for no approval`)
}

const waits = (node: Node): boolean =>
  hasCondition(node, 'needs_approval') || (node.recovery !== null && node.recovery.denied !== null)

const isSuspected = (node: Node): boolean => suspicions.some((suspicion) => hasCondition(node, suspicion))

export type DenyFacts = NodeFacts

/** One person's no to recoveries. It stands until an approval takes it back or the node enrols anew. */
export const decideDeny = ({ node, by, nowMs }: DenyFacts): NodeDecided | Refusal => {
  const { value } = node
  const { recovery } = value
  if (value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  if (recovery === null) {
    return refuse('NODE_STATE_CONFLICT', `${value.id} has registered nothing to recover with`)
  }
  if (recovery.denied !== null) {
    return refuse('NODE_STATE_CONFLICT', `${recovery.denied.by} has said no to ${value.id} already`)
  }
  const denied: Node = {
    ...value,
    recovery: { ...recovery, denied: { by: by.actor, atMs: nowMs } },
    // The question has been answered, also for whoever had begun to say yes.
    approvals: [],
    conditions: withoutConditions(value.conditions, ['needs_approval']),
  }
  const body = { approvals_void: value.approvals.map((approval) => approval.by) }
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(node, denied, [entry(by, nowMs, 'node.recovery_denied', about, body)])
}

const peopleAsked = (profile: Profile): number => Math.max(1, profile.comeback.people)

/** For its return. */
export const approvalsNeeded = (profile: Profile): number =>
  profile.comeback.by === 'approve' ? peopleAsked(profile) : 0

const approvers = (node: Node): number => new Set(node.approvals.map(({ by }) => by)).size

/** True as well where the profile asks nobody. */
export const approvalComplete = (node: Node, profile: Profile): boolean => approvers(node) >= approvalsNeeded(profile)

/** Enough people have said yes to one recovery more. */
export const recoveryApproved = (node: Node, profile: Profile): boolean => approvers(node) >= peopleAsked(profile)
