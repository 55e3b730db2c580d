// Which vCluster a node belongs to, or none. A move is one change, and no certificate is touched by any of it.

import {
  readOf,
  type Row,
  entry,
  nodeDecided,
  mergeParts,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import { clearedEntry, withoutConditions } from '#domain/core/conditions.ts'
import { counted } from '#domain/core/in-words.ts'
import type { EntryDraft, EntryType } from '#domain/core/journal-entry.ts'
import type { ConditionName, Node } from '#domain/core/node.ts'
import { drainEnded } from '#domain/core/quarantined-node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { VCluster } from './vcluster.ts'

/** Row null: there is no such vCluster. */
export type Destination = { readonly name: string; readonly row: Row<VCluster> | null }

export type AssignFacts = NodeFacts & { readonly to: Destination }

export const decideAssign = (facts: AssignFacts): NodeDecided | Refusal => {
  const { id, assignment } = facts.node.value
  const no = unfit(facts.node.value) ?? unfitDestination(facts.to)
  if (no !== null) return no
  if (assignment !== null) {
    return refuse(
      'NODE_STATE_CONFLICT',
      assignment === facts.to.name
        ? `${id} is in ${assignment} already`
        : `${id} is in ${assignment}; to move it: muster node move ${id} --to ${facts.to.name}`,
    )
  }
  return assigned(facts, 'node.assigned', facts.to)
}

export type LeaveFacts = NodeFacts & {
  /** Also with work on it, all of which is released in the same change. */
  readonly force: boolean
  readonly extraParts: ChangePart
}

export const decideMove = (facts: LeaveFacts & AssignFacts): NodeDecided | Refusal => {
  const { id, assignment } = facts.node.value
  const no = unfit(facts.node.value) ?? unfitDestination(facts.to)
  if (no !== null) return no
  if (assignment === null) {
    return refuse(
      'NODE_STATE_CONFLICT',
      `${id} is in no vCluster; to assign it: muster node assign ${id} --to ${facts.to.name}`,
    )
  }
  if (assignment === facts.to.name) return refuse('NODE_STATE_CONFLICT', `${id} is in ${assignment} already`)
  return busy(facts) ?? assigned(facts, 'node.moved', facts.to, facts.extraParts)
}

export type UnassignFacts = LeaveFacts & {
  /** The vCluster that is being deleted: out of that, and of no other. Null: out of whichever it is in. */
  readonly deleted: string | null
}

export const decideUnassign = (facts: UnassignFacts): NodeDecided | Refusal => {
  const { id, assignment } = facts.node.value
  const no = unfit(facts.node.value)
  if (no !== null) return no
  if (assignment === null) return refuse('NODE_STATE_CONFLICT', `${id} is in no vCluster already`)
  if (facts.deleted !== null && facts.deleted !== assignment) {
    return refuse('NODE_STATE_CONFLICT', `${id} has left ${facts.deleted} for ${assignment}`)
  }
  const why = facts.deleted === null ? {} : { why: `${assignment} is deleted` }
  return busy(facts) ?? assigned(facts, 'node.unassigned', null, facts.extraParts, why)
}

const unfit = ({ membership }: Node): Refusal | null => (membership.kind === 'revoked' ? refuse('NODE_REVOKED') : null)

const unfitDestination = ({ name, row }: Destination): Refusal | null => {
  if (row === null || row.value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', name)
  if (!row.value.closed) return null
  return refuse(
    'NODE_STATE_CONFLICT',
    `${name} is closed: it takes no nodes until muster vcluster set ${name} closed=false`,
  )
}

const busy = ({ node, force }: LeaveFacts): Refusal | null => {
  const { id, allocations } = node.value
  if (allocations === 0 || force) return null
  const works = counted(allocations, 'allocation runs', 'allocations run')
  return refuse('NODE_STATE_CONFLICT', `${works} on ${id}: drain it first (muster node drain ${id}), or use --force`)
}

/** About what the vCluster asked for that the node leaves. */
const ofTheFormer: readonly ConditionName[] = ['config_drift', 'service_failed']

const assigned = (
  { node, by, nowMs }: NodeFacts,
  type: EntryType,
  to: Destination | null,
  extraParts: ChangePart = {},
  why: { readonly why?: string } = {},
): NodeDecided => {
  const { value } = node
  const about = { node: value.id, epoch: value.epoch }
  const former = value.conditions.filter(({ name }) => ofTheFormer.includes(name))
  const after: Node = {
    ...value,
    assignment: to === null ? null : to.name,
    // A node that leaves a vCluster keeps no work of it.
    allocations: value.assignment === null ? value.allocations : 0,
    drain: value.drain === 'draining' ? 'drained' : value.drain,
    conditions: withoutConditions(value.conditions, ofTheFormer),
  }
  const body = { vcluster: after.assignment, was: value.assignment, ...why }
  const entries: [EntryDraft, ...EntryDraft[]] = [
    entry(by, nowMs, type, about, body),
    ...drainEnded(value, by, nowMs),
    ...former.map((condition) => clearedEntry(after, condition, by, nowMs)),
  ]
  // A deletion of the vCluster meanwhile has to win.
  const relied = to === null ? {} : { reads: [readOf('vcluster', to.name, to.row)] }
  return nodeDecided(node, after, entries, mergeParts([relied, extraParts]))
}
