// How a task ends: by the result of its node, by an operator, or because its time, its node's epoch or the right to queue it is over.

import { readOf, boundedText, forgedWords, type Read, type Row } from '#domain/core/change.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  noAnswer,
  noResult,
  resultAwaitedMs,
  type Claimed,
  type TaskEnded,
  type TaskId,
  type TaskResult,
} from './task.ts'
import { inState, taskStep, type TaskDecided, type TaskFacts, type TaskUnchanged } from './task-change.ts'
import type { OnRecord } from './task-policy.ts'
import { isSame } from './queue-task.ts'

/** As a node says how it went. `refused`: the host did not begin with it. */
export type ReportedEnd = {
  readonly state: 'completed' | 'failed' | 'unknown' | 'refused'
  readonly result: TaskResult
}

export type ResultFacts = TaskFacts & {
  readonly principal: NodePrincipal
  /** Of the caller. */
  readonly node: Row<Node>
  readonly reported: ReportedEnd
}

/**
 * Counts once, and from the epoch that it was dispatched to only; its renewed certificates are of the same epoch. An epoch that is over
 * finishes nothing: a revocation, a quarantine or a replacement that is committed first wins.
 */
export const decideResult = (facts: ResultFacts): TaskDecided | TaskUnchanged | Refusal => {
  const { task: row, principal, reported } = facts
  const { id, node, state } = row.value
  if (node !== principal.id) return refuse('TASK_NOT_FOUND', id)
  switch (state.kind) {
    case 'queued':
      return refuse('TASK_NOT_YOURS', `${id} has not been dispatched`)
    case 'expired':
    case 'cancelled':
      return alreadyEnded(id, state.kind)
    case 'dispatched':
      return state.epoch === principal.epoch ? endedByNode(facts, state) : ofAnother(id)
    case 'completed':
    case 'failed':
    case 'unknown': {
      if (state.epoch !== principal.epoch) return ofAnother(id)
      // The plane had given up on it, and learns the truth.
      if (state.result.code === noAnswer) return endedByNode(facts, state)
      return stateOf(reported) === state.kind && isSame(reported.result, state.result)
        ? { kind: 'unchanged', task: row.value }
        : alreadyEnded(id, state.kind)
    }
  }
}

const endedByNode = (
  { task: row, line, principal, node, reported, by, nowMs }: ResultFacts,
  claimed: Claimed<'dispatched'> | TaskEnded,
): TaskDecided | Refusal => {
  const over = epochEnd(node.value, principal.epoch)
  if (over !== null) return refuse('TASK_NOT_YOURS', `${row.value.id}: ${over}`)
  const { result } = reported
  const { dispatchedAtMs, epoch, fingerprint, signer, counter, issuedAtMs } = claimed
  const state: TaskEnded = {
    ...{ kind: stateOf(reported), dispatchedAtMs, epoch, fingerprint, signer, counter, issuedAtMs },
    ...{ endedAtMs: nowMs, result },
  }
  const body = { code: result.code, exit_code: result.exitCode, detail: result.detail }
  return taskStep({
    ...{ from: row, task: inState(row.value, state), line, by, nowMs, body },
    type: `task.${reported.state}`,
    reads: [readOf('node', row.value.node, node)],
  })
}

const stateOf = ({ state }: ReportedEnd): TaskEnded['kind'] => (state === 'refused' ? 'failed' : state)

const alreadyEnded = (id: TaskId, how: string): Refusal => refuse('TASK_ALREADY_ENDED', `${id} is ${how}`)

const ofAnother = (id: TaskId): Refusal =>
  refuse('TASK_NOT_YOURS', `${id} was dispatched to another epoch of this node`)

export type CancelFacts = TaskFacts & { readonly why: string }

/** What has left the plane cannot be called back. */
export const decideCancel = (facts: CancelFacts): TaskDecided | TaskUnchanged | Refusal => {
  const { value: task } = facts.task
  switch (task.state.kind) {
    case 'queued':
      return cancelled(facts, facts.why)
    case 'cancelled':
      return { kind: 'unchanged', task }
    case 'dispatched':
      return refuse('TASK_DISPATCHED', task.id)
    case 'completed':
    case 'failed':
    case 'unknown':
    case 'expired':
      return alreadyEnded(task.id, task.state.kind)
  }
}

export type OverdueFacts = TaskFacts & {
  /** Null: it was purged. */
  readonly node: Row<Node> | null
  readonly domain: Row<DomainSettings>
  readonly queuer: OnRecord
}

/** What the leader does about an open task that waits for nothing any more. */
export const decideOverdue = (facts: OverdueFacts): TaskDecided | TaskUnchanged => {
  const { task: row, node, domain, queuer, nowMs } = facts
  const { state, epoch, expiresAtMs } = row.value
  const ofEpoch = node === null ? 'its node was purged' : epochEnd(node.value, epoch)
  const over = row.value.forged ? forgedWords : ofEpoch
  const relied = [readOf('node', row.value.node, node)]
  switch (state.kind) {
    case 'queued':
      if (over !== null) return cancelled(facts, over, relied)
      if (typeof queuer.caller === 'string') return cancelled(facts, queuer.caller, queuer.reads)
      if (nowMs >= expiresAtMs) return expired(facts)
      break
    case 'dispatched': {
      const untilMs = expiresAtMs + domain.value.clockToleranceMs + resultAwaitedMs
      if (over !== null) return unanswered(facts, state, `it had no result, and ${over}`)
      if (nowMs >= untilMs) return unanswered(facts, state, 'it had no result when it had long expired')
      break
    }
    case 'completed':
    case 'failed':
    case 'unknown':
    case 'expired':
    case 'cancelled':
      break
  }
  return { kind: 'unchanged', task: row.value }
}

/** Why the epoch can neither take nor finish a task; null: it can. */
export const epochEnd = (node: Node, epoch: number): string | null => {
  if (node.membership.kind === 'revoked') return 'its node was revoked'
  if (node.membership.kind === 'quarantined') return 'its node was quarantined'
  if (node.epoch !== epoch) return `its node is in epoch ${node.epoch} by now`
  return slotsOf(node) === null ? 'its node has lost its identity' : null
}

export const cancelled = (
  { task: row, line, by, nowMs }: TaskFacts,
  why: string,
  reads: readonly Read[] = [],
): TaskDecided => {
  const state = { kind: 'cancelled', atMs: nowMs, by: by.actor, why: boundedText(why) } as const
  const body = { why: state.why }
  return taskStep({ from: row, task: inState(row.value, state), line, by, nowMs, type: 'task.cancelled', body, reads })
}

export const expired = ({ task: row, line, by, nowMs }: TaskFacts): TaskDecided =>
  taskStep({
    ...{ from: row, task: inState(row.value, { kind: 'expired', atMs: nowMs }), line, by, nowMs },
    type: 'task.expired',
  })

const unanswered = (
  { task: row, line, by, nowMs }: TaskFacts,
  claimed: Claimed<'dispatched'>,
  why: string,
): TaskDecided => {
  const state: TaskEnded = { ...claimed, kind: 'unknown', endedAtMs: nowMs, result: noResult(why) }
  const body = { code: noAnswer, detail: why }
  return taskStep({ from: row, task: inState(row.value, state), line, by, nowMs, type: 'task.unknown', body })
}
