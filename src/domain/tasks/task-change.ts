// What every step of a task writes: its row, the line of its node, and the entry that says so.

import {
  boundedText,
  decided,
  entry,
  readOf,
  type Attribution,
  type Decided,
  type Read,
  type Row,
} from '#domain/core/change.ts'
import type { EntryBody, EntryType } from '#domain/core/journal-entry.ts'
import { issuerInId } from '#domain/core/principal.ts'
import type { Task, TaskLine, TaskState } from './task.ts'
import { emptyLine } from './task.ts'

export type TaskDecided = Decided & { readonly task: Task }

/** Nothing to do: the answer is the task as it is. */
export type TaskUnchanged = { readonly kind: 'unchanged'; readonly task: Task }

/** What every decision about a task that is there is given. */
export type TaskFacts = {
  readonly task: Row<Task>
  readonly line: Row<TaskLine> | null
  readonly by: Attribution
  readonly nowMs: number
}

export type Step = {
  /** Null: the task is new. */
  readonly from: Row<Task> | null
  readonly task: Task
  readonly line: Row<TaskLine> | null
  /** Taken from the line as well: the counter of an envelope. */
  readonly counter?: number
  readonly by: Attribution
  readonly nowMs: number
  readonly type: EntryType
  readonly body?: EntryBody
  /** Of other rows that it relies on. */
  readonly reads?: readonly Read[]
}

export const taskStep = ({ from, task, line, counter, by, nowMs, type, body = {}, reads = [] }: Step): TaskDecided => {
  const before = line === null ? emptyLine(task.node) : line.value
  const moved = (kind: 'queued' | 'dispatched'): number =>
    (task.state.kind === kind ? 1 : 0) - (from !== null && from.value.state.kind === kind ? 1 : 0)
  const after: TaskLine = {
    ...before,
    counter: counter ?? before.counter,
    // A line that was lost counts from nothing.
    queued: Math.max(0, before.queued + moved('queued')),
    dispatched: Math.max(0, before.dispatched + moved('dispatched')),
    dispatchedOfWorkers: Math.max(
      0,
      before.dispatchedOfWorkers + (task.queuedBy.kind === 'worker' ? moved('dispatched') : 0),
    ),
    lastOf: moved('dispatched') > 0 ? task.queuedBy.kind : before.lastOf,
    queuedOf: movedOf(before.queuedOf, task, moved('queued')),
  }
  const about = { node: task.node, epoch: task.epoch }
  const said = { task: task.id, type: task.type, ...body }
  return {
    ...decided({
      reads: [readOf('task', task.id, from), readOf('task-line', task.node, line), ...reads],
      writes: [
        { put: 'task', value: task },
        { put: 'task-line', value: after },
      ],
      entries: [entry({ ...by, correlation: task.correlation }, nowMs, type, about, said)],
    }),
    task,
  }
}

const movedOf = (before: TaskLine['queuedOf'], { queuedBy }: Task, by: number): TaskLine['queuedOf'] => {
  if (queuedBy.kind !== 'worker' || by === 0) return before
  const issuer = issuerInId(queuedBy.id)
  const counts = new Map(Object.entries(before))
  const after = (counts.get(issuer) ?? 0) + by
  if (after > 0) counts.set(issuer, after)
  else counts.delete(issuer)
  return Object.fromEntries(counts)
}

export const inState = (task: Task, state: TaskState): Task => ({ ...task, state })

/** Of parameters, for the journal, which is kept for good: short, and without what looks like a secret. */
export const parametersInShort = (parameters: Task['parameters']): string => boundedText(JSON.stringify(parameters))
