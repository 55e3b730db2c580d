// A rollout: the same task for many nodes. Its tasks are made a few at a time, in the order of its nodes: at most `concurrency` are
// open at once, and none is made any more once too many have failed.

import {
  boundedText,
  decided,
  entry,
  forgedWords,
  readOf,
  type Attribution,
  type ChangePart,
  type Decided,
  type MayBeForged,
  type Row,
} from '#domain/core/change.ts'
import type { EntryBody, EntryType } from '#domain/core/journal-entry.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { parametersInShort } from './task-change.ts'
import { endedTaskKeptMs, type Task, type TaskQueuer, type TaskState } from './task.ts'

export type Rollout = MayBeForged & {
  /** Of the plan that began it: it sorts by time. */
  readonly id: string
  readonly type: string
  readonly parameters: Task['parameters']
  /** How long each task may wait for its node. */
  readonly lifeMs: number
  /** How many; which, is in rows of their own (RolloutNodes), so that a step writes none of them. */
  readonly nodes: number
  readonly concurrency: number
  /** So many failures since it was begun or resumed hold it. */
  readonly failureLimit: number
  /** In whose name its tasks are queued: who computed the plan. */
  readonly queuedBy: Pick<TaskQueuer, 'kind' | 'id'>
  /** Whose key applied it; the same, or another operator's, who has to be allowed to queue its tasks too. */
  readonly appliedBy: Pick<TaskQueuer, 'kind' | 'id'>
  /** Who applied it, as in the journal. */
  readonly by: string
  readonly createdAtMs: number
  readonly correlation: string
  /** How many of its nodes it has come to. Their tasks are in the store before this says so. */
  readonly reached: number
  /** How many of those got no task, because the rules forbade it by then or too many waited for the node already. */
  readonly refused: number
  /** Which of them were the last, and why; null: none was refused. */
  readonly lastRefused: string | null
  /** What keeps its next task from being made; null: nothing does. */
  readonly stalledBy: string | null
  /** Failures that an operator has seen and resumed it after. */
  readonly forgiven: number
  readonly state: RolloutState
}

/** A part of the list of a rollout, in its order. It is written with the rollout and never changed. */
export type RolloutNodes = MayBeForged & {
  readonly rollout: string
  /** Its place in the list, from 0. */
  readonly part: number
  readonly nodes: readonly NodeId[]
  /** When it can go; the rollout is over by then. */
  readonly untilMs: number
}

/** Made of one rollout in a step, at most: a step reads one part. */
export const nodesInPart = 100

export const rolloutNodesKey = ({ rollout, part }: Pick<RolloutNodes, 'rollout' | 'part'>): string =>
  `${rollout}/${String(part).padStart(4, '0')}`

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
/** That are not over: the leader looks at each of them every second. May be off by what is applied within a moment. */
export const mostOpenRollouts = 200
export const usualFailureLimit = 1

/** A rollout that is not over by then is cancelled: the first of its tasks are removed a day later, and could not be counted. */
export const rolloutLifeMs = endedTaskKeptMs - 24 * 3_600_000

/** What a step counts, however many nodes there are: `failed` at most up to what could matter (mostFailuresOf). */
export type OpenAndFailed = { readonly open: number; readonly failed: number }

/** None is made once the limit is reached, so what was open then may have failed as well, and nothing else. */
export const mostFailuresOf = ({ failureLimit, forgiven, concurrency }: Rollout): number =>
  forgiven + failureLimit + concurrency

export const failuresOf = ({ refused }: Pick<Rollout, 'refused'>, counts: TaskCounts): number =>
  counts.failed + counts.unknown + counts.expired + refused

/** Null while the leader has something to do with it. */
export const rolloutEndedAtMs = ({ state }: Pick<Rollout, 'state'>): number | null =>
  state.kind === 'done' || (state.kind === 'cancelled' && state.settled) ? state.atMs : null

export type NextStep =
  | { readonly kind: 'wait' }
  /** Of the nodes of one part, from the place `from` in it on. */
  | { readonly kind: 'make'; readonly part: number; readonly from: number; readonly count: number }
  | { readonly kind: 'hold'; readonly why: string }
  | { readonly kind: 'finish' }
  | { readonly kind: 'give-up'; readonly why: string }
  /** What waits of a cancelled one is to be cancelled. */
  | { readonly kind: 'settle' }

/** `keyEnded`: why its tasks cannot be queued any more; null: they can. */
export type StepFacts = {
  readonly rollout: Rollout
  readonly counts: OpenAndFailed
  readonly keyEnded: string | null
  readonly nowMs: number
}

export const nextStep = ({ rollout, counts, keyEnded, nowMs }: StepFacts): NextStep => {
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
  if (rollout.forged) return { kind: 'give-up', why: forgedWords }
  if (keyEnded !== null) return { kind: 'give-up', why: keyEnded }
  if (nowMs - createdAtMs >= rolloutLifeMs) return { kind: 'give-up', why: 'it was not over after 6 days' }
  if (state.kind === 'held') return { kind: 'wait' }
  const { open } = counts
  if (reached === nodes) return open === 0 ? { kind: 'finish' } : { kind: 'wait' }
  const failures = counts.failed + rollout.refused
  if (failures - forgiven >= failureLimit) {
    const refusal = rollout.lastRefused === null ? '' : `; refused last: ${rollout.lastRefused}`
    const why = `${failures} of ${reached} tasks have failed, and the limit is ${failureLimit}${refusal}`
    return { kind: 'hold', why }
  }
  const room = concurrency - open
  if (room <= 0) return { kind: 'wait' }
  const from = reached % nodesInPart
  const count = Math.min(room, nodesInPart - from, nodes - reached)
  return { kind: 'make', part: Math.floor(reached / nodesInPart), from, count }
}

export type RolloutDecided = Decided & { readonly rollout: Rollout }
export type RolloutUnchanged = { readonly kind: 'unchanged'; readonly rollout: Rollout }

type ChangeFacts = { readonly rollout: Row<Rollout>; readonly by: Attribution; readonly nowMs: number }

/** What begins one, as a part of the commit that applies its plan. */
export const rolloutBegun = (
  rollout: Rollout,
  nodes: readonly NodeId[],
  by: Attribution,
  nowMs: number,
): ChangePart => ({
  reads: [
    readOf('task-rollout', rollout.id, null),
    ...partsOf(rollout, nodes).map((part) => readOf('rollout-nodes', rolloutNodesKey(part), null)),
  ],
  writes: [
    { put: 'task-rollout', value: rollout },
    ...partsOf(rollout, nodes).map((value) => ({ put: 'rollout-nodes', value }) as const),
  ],
  entries: [
    said(rollout, by, nowMs, 'rollout.begun', {
      nodes: rollout.nodes,
      concurrency: rollout.concurrency,
      failure_limit: rollout.failureLimit,
      parameters: parametersInShort(rollout.parameters),
    }),
  ],
})

const partsOf = ({ id, createdAtMs }: Rollout, nodes: readonly NodeId[]): readonly RolloutNodes[] =>
  Array.from({ length: Math.ceil(nodes.length / nodesInPart) }, (_, part) => ({
    ...{ rollout: id, part, nodes: nodes.slice(part * nodesInPart, (part + 1) * nodesInPart) },
    untilMs: createdAtMs + rolloutLifeMs + endedTaskKeptMs,
  }))

/** `refusals`: which of the next nodes got no task, and why. */
export const advanced = (
  facts: ChangeFacts,
  made: number,
  refusals: readonly { readonly node: NodeId; readonly why: string }[],
): RolloutDecided => {
  const { value } = facts.rollout
  const refused = boundedText(refusals.map(({ node, why }) => `${node}: ${why}`).join('; '))
  const next = {
    ...value,
    ...{ reached: value.reached + made, refused: value.refused + refusals.length, stalledBy: null },
    lastRefused: refusals.length === 0 ? value.lastRefused : refused,
  }
  return changed(facts, next, 'rollout.advanced', { reached: next.reached, of: next.nodes, refused })
}

/** Said once, until it goes on: it is tried again every second. */
export const stalled = (facts: ChangeFacts, why: string): RolloutDecided | RolloutUnchanged => {
  const { value } = facts.rollout
  if (value.stalledBy !== null || value.state.kind !== 'running') return { kind: 'unchanged', rollout: value }
  const stalledBy = boundedText(why)
  return changed(facts, { ...value, stalledBy }, 'rollout.stalled', { why: stalledBy })
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
  if (rollout.forged) return refuse('ROLLOUT_ENDED', `${rollout.id}: ${forgedWords}`)
  switch (rollout.state.kind) {
    case 'held': {
      const forgiven = failuresOf(rollout, counts)
      const resumed: Rollout = { ...rollout, forgiven, stalledBy: null, state: { kind: 'running' } }
      return changed(facts, resumed, 'rollout.resumed', { forgiven })
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
