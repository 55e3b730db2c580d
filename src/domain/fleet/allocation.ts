// Work that an owner has placed on a node: as much of it as it takes to give it back. The node's row counts its allocations, so
// that a withdrawal of the node and a new allocation cannot miss each other.

import type { NodeId, Node } from '#domain/core/node.ts'
import {
  readOf,
  type Row,
  boundedText,
  entry,
  type Attribution,
  nodeDecided,
  type ChangePart,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import type { EntryBody, EntryDraft, EntryType } from '#domain/core/journal-entry.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { schedulingOf } from './scheduling.ts'

export type Allocation = {
  readonly id: string
  readonly vcluster: string
  readonly owner: string
  readonly node: NodeId
  readonly createdAtMs: number
  readonly createdBy: string
  readonly state: AllocationState
}

export type AllocationState =
  | { readonly kind: 'running' }
  /** The node drains: its owner is asked to move it. */
  | { readonly kind: 'releasing'; readonly atMs: number; readonly why: string }
  /** `forced`: taken from its owner, who learns of it from the journal. */
  | {
      readonly kind: 'released'
      readonly atMs: number
      readonly why: string
      readonly by: string
      readonly forced: boolean
    }

export const allocationStates = [
  'running',
  'releasing',
  'released',
] as const satisfies readonly AllocationState['kind'][]

/** The most allocations of one node: a quarantine releases all of them in one transaction. */
export const mostAllocations = 256

/** How long a released one stays in the store. */
export const releasedKeptMs = 30 * 24 * 3_600_000

// Placing work on a node, asking for it back, and taking it. Each is written together with the node's count of what it has,
// so a node that is withdrawn takes all of its work with it, also against an allocation that is being placed.

export type AllocationDecided = NodeDecided & { readonly allocation: Allocation }

/** Nothing to do: the answer is the earlier one. */
export type AllocationKnown = { readonly kind: 'unchanged'; readonly allocation: Allocation }

export type PlaceFacts = NodeFacts & {
  /** `id` is the caller's: a caller that lost an answer asks again by it. */
  readonly wanted: Pick<Allocation, 'id' | 'vcluster' | 'owner'>
  /** What is in the store under that id. */
  readonly existing: Row<Allocation> | null
}

export const decidePlace = (facts: PlaceFacts): AllocationDecided | AllocationKnown | Refusal => {
  const { node, wanted, existing, by, nowMs } = facts
  if (existing !== null) return repeated(facts, existing.value)
  const barred = placementBarred(node.value, wanted.vcluster)
  if (barred !== null) return barred
  const allocation: Allocation = {
    ...wanted,
    node: node.value.id,
    createdAtMs: nowMs,
    createdBy: by.actor,
    state: { kind: 'running' },
  }
  const counted: Node = { ...node.value, allocations: node.value.allocations + 1 }
  return {
    ...nodeDecided(node, counted, [said(facts, 'allocation.created', allocation)], {
      reads: [readOf('allocation', wanted.id, existing)],
      writes: [{ put: 'allocation', value: allocation }],
    }),
    allocation,
  }
}

/** The same answer also once it has been released: a repeated request starts nothing twice. */
const repeated = ({ node, wanted }: PlaceFacts, known: Allocation): AllocationKnown | Refusal =>
  known.node === node.value.id && known.vcluster === wanted.vcluster && known.owner === wanted.owner
    ? { kind: 'unchanged', allocation: known }
    : refuse(
        'NODE_STATE_CONFLICT',
        `allocation ${known.id} is there already, of ${known.owner} in vCluster ${known.vcluster} on ${known.node}: muster allocation show ${known.id}`,
      )

const placementBarred = (node: Node, vcluster: string): Refusal | null => {
  const { state, reasons } = schedulingOf(node)
  if (state !== 'schedulable') return refuse('NODE_NOT_SCHEDULABLE', boundedText(`${node.id}: ${reasons.join(', ')}`))
  if (node.assignment !== vcluster) {
    return refuse('NODE_NOT_SCHEDULABLE', `${node.id} is in vCluster ${node.assignment}, not in ${vcluster}`)
  }
  return node.allocations < mostAllocations
    ? null
    : refuse('NODE_NOT_SCHEDULABLE', `${node.id} has ${node.allocations} allocations, and no node has more`)
}

export type GiveBackFacts = NodeFacts & { readonly allocation: Row<Allocation>; readonly why: string }

/** The last one of a node that drains ends the drain. */
export const decideGiveBack = (facts: GiveBackFacts): AllocationDecided | AllocationKnown => {
  const { node, by, nowMs } = facts
  if (facts.allocation.value.state.kind === 'released') return { kind: 'unchanged', allocation: facts.allocation.value }
  const why = boundedText(facts.why)
  const allocation = released(facts.allocation.value, { why, by, nowMs, forced: false })
  const left = node.value.allocations - 1
  const drained = left === 0 && node.value.drain === 'draining'
  const after: Node = { ...node.value, allocations: left, drain: drained ? 'drained' : node.value.drain }
  const entries: readonly [EntryDraft, ...EntryDraft[]] = [
    said(facts, 'allocation.released', allocation, { forced: false, why }),
    ...(drained ? [entry(by, nowMs, 'node.drained', aboutOf(node.value), { was: 'draining' })] : []),
  ]
  return {
    ...nodeDecided(
      node,
      after,
      entries,
      rewritten([facts.allocation], () => allocation),
    ),
    allocation,
  }
}

export type AllocationsFacts = NodeFacts & {
  /** Those of the node that are not released, read after its row. */
  readonly allocations: readonly Row<Allocation>[]
}

export type ReleaseAllFacts = AllocationsFacts & { readonly why: string }

/** A node that loses its identity loses its work; the owners learn of it from the journal. */
export const releaseAll = (facts: ReleaseAllFacts): ChangePart => {
  const { allocations, by, nowMs } = facts
  const why = boundedText(facts.why)
  return {
    ...rewritten(allocations, (one) => released(one, { why, by, nowMs, forced: true })),
    entries: allocations.map(({ value }) => said(facts, 'allocation.released', value, { forced: true, why })),
  }
}

/** The node drains: the owners of its work are asked to move it. */
export const askForAll = (facts: AllocationsFacts, why: string): ChangePart => {
  const running = facts.allocations.filter(({ value }) => value.state.kind === 'running')
  const state: AllocationState = { kind: 'releasing', atMs: facts.nowMs, why }
  return {
    ...rewritten(running, (one) => ({ ...one, state })),
    entries: running.map(({ value }) => said(facts, 'allocation.release_requested', value, { why })),
  }
}

/** It does not drain any more: what has not been moved yet may stay. */
export const letAllStay = (facts: AllocationsFacts): ChangePart => {
  const asked = facts.allocations.filter(({ value }) => value.state.kind === 'releasing')
  return {
    ...rewritten(asked, (one) => ({ ...one, state: { kind: 'running' } })),
    entries: asked.map(({ value }) => said(facts, 'allocation.release_withdrawn', value)),
  }
}

type Taken = {
  readonly why: string
  readonly by: Attribution
  readonly nowMs: number
  readonly forced: boolean
}

const released = (allocation: Allocation, { why, by, nowMs, forced }: Taken): Allocation => ({
  ...allocation,
  state: { kind: 'released', atMs: nowMs, why, by: by.actor, forced },
})

const rewritten = (
  rows: readonly Row<Allocation>[],
  change: (one: Allocation) => Allocation,
): Required<Pick<ChangePart, 'reads' | 'writes'>> => ({
  reads: rows.map((row) => readOf('allocation', row.value.id, row)),
  writes: rows.map(({ value }) => ({ put: 'allocation', value: change(value) })),
})

const aboutOf = ({ id, epoch }: Node) => ({ node: id, epoch })

/** Everything a scheduler needs to act on it: the outbox is the journal. */
const said = (
  { node, by, nowMs }: NodeFacts,
  type: EntryType,
  { id, owner, vcluster }: Allocation,
  more: EntryBody = {},
): EntryDraft => entry(by, nowMs, type, aboutOf(node.value), { allocation: id, owner, vcluster, ...more })
