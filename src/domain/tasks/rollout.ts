// A rollout: the same task for many nodes. Its tasks are made a few at a time, in the order of its nodes: at most `concurrency` are
// open at once, and none is made any more once too many have failed.

import {
  boundedText,
  decided,
  entry,
  readOf,
  type Attribution,
  type ChangePart,
  type Decided,
  type Row,
} from '#domain/core/change.ts'
import type { EntryBody, EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { parametersInShort } from './task-change.ts'
import { endedTaskKeptMs, type Task, type TaskQueuer, type TaskState } from './task.ts'

export type Rollout = {
  /** Of the plan that began it: it sorts by time. */
  readonly id: string
  readonly type: string
  readonly parameters: Task['parameters']
  /** How long each task may wait for its node. */
  readonly lifeMs: number
  readonly nodes: readonly NodeId[]
  readonly concurrency: number
  /** So many failures since it was begun or resumed hold it. */
  readonly failureLimit: number
  /** In whose name its tasks are queued: who computed the plan. */
  readonly queuedBy: Pick<TaskQueuer, 'kind' | 'id'>
  /** Who applied it, as in the journal. */
  readonly by: string
  readonly createdAtMs: number
  readonly correlation: string
  /** How many of its nodes it has come to. Their tasks are in the store before this says so. */
  readonly reached: number
  /** How many of those got no task, because the rules forbade it by then. */
  readonly refused: number
  /** Failures that an operator has seen and resumed it after. */
  readonly forgiven: number
  readonly state: RolloutState
}

export type RolloutState =
  | { readonly kind: 'running' }
  | { readonly kind: 'held'; readonly atMs: number; readonly why: string }
  | { readonly kind: 'done'; readonly atMs: number }
  /** `settled`: what waited of it is cancelled as well. */
  | { readonly kind: 'cancelled'; readonly atMs: number; readonly why: string; readonly settled: boolean }

export const rolloutStates = ['running', 'held', 'done', 'cancelled'] as const satisfies readonly RolloutState['kind'][]

/** Its tasks, by their states. */
export type TaskCounts = Readonly<Record<TaskState['kind'], number>>

export const mostAtOnce = 1000
export const usualAtOnce = 10
export const usualFailureLimit = 1

/** A rollout that is not over by then is cancelled: the first of its tasks are removed a day later, and could not be counted. */
export const rolloutLifeMs = endedTaskKeptMs - 24 * 3_600_000

export const failuresOf = ({ refused }: Pick<Rollout, 'refused'>, counts: TaskCounts): number =>
  counts.failed + counts.unknown + counts.expired + refused

/** Null while the leader has something to do with it. */
export const rolloutEndedAtMs = ({ state }: Pick<Rollout, 'state'>): number | null =>
  state.kind === 'done' || (state.kind === 'cancelled' && state.settled) ? state.atMs : null

export type NextStep =
  | { readonly kind: 'wait' }
  | { readonly kind: 'make'; readonly nodes: readonly NodeId[] }
  | { readonly kind: 'hold'; readonly why: string }
  | { readonly kind: 'finish' }
  | { readonly kind: 'give-up'; readonly why: string }
  /** What waits of a cancelled one is to be cancelled. */
  | { readonly kind: 'settle' }

/** `queuerEnded`: why its tasks cannot be queued any more; null: they can. */
export type StepFacts = {
  readonly rollout: Rollout
  readonly counts: TaskCounts
  readonly queuerEnded: string | null
  readonly nowMs: number
}

export const nextStep = ({ rollout, counts, queuerEnded, nowMs }: StepFacts): NextStep => {
  const { state, nodes, reached, concurrency, failureLimit, forgiven, createdAtMs } = rollout
  switch (state.kind) {
    case 'done':
      return { kind: 'wait' }
    case 'cancelled':
      return state.settled ? { kind: 'wait' } : { kind: 'settle' }
    case 'held':
    case 'running':
      break
  }
  if (queuerEnded !== null) return { kind: 'give-up', why: queuerEnded }
  if (nowMs - createdAtMs >= rolloutLifeMs) return { kind: 'give-up', why: 'it was not over after 6 days' }
  if (state.kind === 'held') return { kind: 'wait' }
  const open = counts.queued + counts.dispatched
  if (reached === nodes.length) return open === 0 ? { kind: 'finish' } : { kind: 'wait' }
  const failures = failuresOf(rollout, counts)
  if (failures - forgiven >= failureLimit)
    return { kind: 'hold', why: `${failures} of ${reached} tasks have failed, and the limit is ${failureLimit}` }
  const room = concurrency - open
  return room <= 0 ? { kind: 'wait' } : { kind: 'make', nodes: nodes.slice(reached, reached + room) }
}

export type RolloutDecided = Decided & { readonly rollout: Rollout }
export type RolloutUnchanged = { readonly kind: 'unchanged'; readonly rollout: Rollout }

type ChangeFacts = { readonly rollout: Row<Rollout>; readonly by: Attribution; readonly nowMs: number }

/** What begins one, as a part of the commit that applies its plan. */
export const rolloutBegun = (rollout: Rollout, by: Attribution, nowMs: number): ChangePart => ({
  reads: [readOf('task-rollout', rollout.id, null)],
  writes: [{ put: 'task-rollout', value: rollout }],
  entries: [
    said(rollout, by, nowMs, 'rollout.begun', {
      nodes: rollout.nodes.length,
      concurrency: rollout.concurrency,
      failure_limit: rollout.failureLimit,
      parameters: parametersInShort(rollout.parameters),
    }),
  ],
})

/** `refusals`: which of the next nodes got no task, and why. */
export const advanced = (
  facts: ChangeFacts,
  made: number,
  refusals: readonly { readonly node: NodeId; readonly why: string }[],
): RolloutDecided => {
  const { value } = facts.rollout
  const next = { ...value, reached: value.reached + made, refused: value.refused + refusals.length }
  return changed(facts, next, 'rollout.advanced', {
    reached: next.reached,
    of: next.nodes.length,
    refused: boundedText(refusals.map(({ node, why }) => `${node}: ${why}`).join('; ')),
  })
}

export const held = (facts: ChangeFacts, why: string): RolloutDecided =>
  inState(facts, { kind: 'held', atMs: facts.nowMs, why }, 'rollout.held', { why })

export const finished = (facts: ChangeFacts): RolloutDecided =>
  inState(facts, { kind: 'done', atMs: facts.nowMs }, 'rollout.done', {})

export const settled = (facts: ChangeFacts): RolloutDecided | RolloutUnchanged => {
  const { state } = facts.rollout.value
  return state.kind === 'cancelled'
    ? inState(facts, { ...state, settled: true }, 'rollout.settled', {})
    : { kind: 'unchanged', rollout: facts.rollout.value }
}

export const decideCancelRollout = (facts: ChangeFacts, why: string): RolloutDecided | RolloutUnchanged | Refusal => {
  const { value: rollout } = facts.rollout
  switch (rollout.state.kind) {
    case 'running':
    case 'held':
      return inState(
        facts,
        { kind: 'cancelled', atMs: facts.nowMs, why: boundedText(why), settled: false },
        'rollout.cancelled',
        { why: boundedText(why) },
      )
    case 'cancelled':
      return { kind: 'unchanged', rollout }
    case 'done':
      return refuse('ROLLOUT_ENDED', `${rollout.id} is done`)
  }
}

/** What has failed until now does not count any more. */
export const decideResumeRollout = (
  facts: ChangeFacts,
  counts: TaskCounts,
): RolloutDecided | RolloutUnchanged | Refusal => {
  const { value: rollout } = facts.rollout
  switch (rollout.state.kind) {
    case 'held': {
      const forgiven = failuresOf(rollout, counts)
      return changed(facts, { ...rollout, forgiven, state: { kind: 'running' } }, 'rollout.resumed', { forgiven })
    }
    case 'running':
      return { kind: 'unchanged', rollout }
    case 'done':
    case 'cancelled':
      return refuse('ROLLOUT_ENDED', `${rollout.id} is ${rollout.state.kind}`)
  }
}

const inState = (facts: ChangeFacts, state: RolloutState, type: EntryType, body: EntryBody): RolloutDecided =>
  changed(facts, { ...facts.rollout.value, state }, type, body)

const changed = (
  { rollout: row, by, nowMs }: ChangeFacts,
  rollout: Rollout,
  type: EntryType,
  body: EntryBody,
): RolloutDecided => ({
  ...decided({
    reads: [readOf('task-rollout', rollout.id, row)],
    writes: [{ put: 'task-rollout', value: rollout }],
    entries: [said(rollout, by, nowMs, type, body)],
  }),
  rollout,
})

const said = (
  { id, type, correlation }: Rollout,
  by: Attribution,
  nowMs: number,
  entryType: EntryType,
  body: EntryBody,
) => entry({ ...by, correlation }, nowMs, entryType, {}, { rollout: id, type, ...body })
