// Approval: under some profiles people decide whether a node that was gone may come back.

import { readOf, type Row } from './change.ts'
import { hasCondition, withoutConditions } from './conditions.ts'
import { entry } from './decision.ts'
import { nodeDecided, type NodeDecided, type NodeFacts } from './node-change.ts'
import type { Node } from './node.ts'
import type { Profile } from './profile.ts'
import { refuse, type Refusal } from './refusal.ts'

export type ApproveFacts = NodeFacts & { readonly profile: Row<Profile> }

/** One person's yes. */
export const decideApprove = ({ node, profile, by, nowMs }: ApproveFacts): NodeDecided | Refusal => {
  const { value } = node
  const unfit = notForApproval(value, profile.value)
  if (unfit !== null) return unfit
  if (value.approvals.some((approval) => approval.by === by.actor)) {
    return refuse('NODE_STATE_CONFLICT', `${by.actor} has approved ${value.id} already; another person has to`)
  }
  if (approvalComplete(value, profile.value)) {
    return refuse('NODE_STATE_CONFLICT', `${value.id} has all approvals it needs`)
  }
  const approved: Node = { ...value, approvals: [...value.approvals, { by: by.actor, atMs: nowMs }] }
  const complete = approvalComplete(approved, profile.value)
  const body = { approvals: approved.approvals.length, needed: approvalsNeeded(profile.value), complete }
  return nodeDecided(
    node,
    complete ? { ...approved, conditions: withoutConditions(approved.conditions, ['needs_approval']) } : approved,
    [entry(by, nowMs, 'node.approved', { node: value.id, epoch: value.epoch }, body)],
    { reads: [readOf('profile', profile.value.name, profile)] },
  )
}

const notForApproval = (node: Node, profile: Profile): Refusal | null => {
  switch (node.membership.kind) {
    case 'revoked':
      return refuse('NODE_REVOKED')
    case 'quarantined':
      return refuse('NODE_QUARANTINED')
    case 'registered':
    case 'active':
      if (hasCondition(node, 'needs_approval')) break
      return refuse('NODE_STATE_CONFLICT', `${node.id} is ${node.membership.kind} and waits for no approval`)
    case 'enrolled':
    case 'inactive':
      break
  }
  if (profile.comeback.by === 'approve') return null
  return refuse('NODE_STATE_CONFLICT', `profile ${profile.name} asks for no approval`)
}

export const approvalsNeeded = (profile: Profile): number =>
  profile.comeback.by === 'approve' ? Math.max(1, profile.comeback.people) : 0

/** True as well where the profile asks nobody. */
export const approvalComplete = (node: Node, profile: Profile): boolean =>
  new Set(node.approvals.map(({ by }) => by)).size >= approvalsNeeded(profile)
