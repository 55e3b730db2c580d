// Approval: people decide whether a node that was gone may come back, and whether one may recover (rulings 3 and 6).

import { readOf, type Row, entry, nodeDecided, type NodeDecided, type NodeFacts } from './change.ts'
import { hasCondition, withoutConditions } from './conditions.ts'
import type { Node } from './node.ts'
import type { Profile } from './profile.ts'
import { refuse, type Refusal } from './refusal.ts'

export type ApproveFacts = NodeFacts & { readonly profile: Row<Profile> }

/** One person's yes, to a return or to one recovery more. */
export const decideApprove = ({ node, profile, by, nowMs }: ApproveFacts): NodeDecided | Refusal => {
  const { value } = node
  const unfit = notForApproval(value, profile.value)
  if (unfit !== null) return unfit
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
      if (waits(node)) return null
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

export type DenyFacts = NodeFacts

/** An operator's denial of recoveries. It holds until an approval undoes it or the node enrolls again. */
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
    // The denial also ends approvals that were given so far.
    approvals: [],
    conditions: withoutConditions(value.conditions, ['needs_approval']),
  }
  const body = { approvals_void: value.approvals.map((approval) => approval.by) }
  const about = { node: value.id, epoch: value.epoch }
  return nodeDecided(node, denied, [entry(by, nowMs, 'node.recovery_denied', about, body)])
}

/** To decide anything about a node of this profile. */
export const peopleAsked = (profile: Profile): number => Math.max(1, profile.comeback.people)

/** For its return. */
export const approvalsNeeded = (profile: Profile): number =>
  profile.comeback.by === 'approve' ? peopleAsked(profile) : 0

const approvers = (node: Node): number => new Set(node.approvals.map(({ by }) => by)).size

/** True as well where the profile needs no approval. */
export const approvalComplete = (node: Node, profile: Profile): boolean => approvers(node) >= approvalsNeeded(profile)

/** Enough people have said yes to one recovery more. */
export const recoveryApproved = (node: Node, profile: Profile): boolean => approvers(node) >= peopleAsked(profile)
