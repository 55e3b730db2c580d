// A task: a typed, signed instruction to one node. Its state says what the plane knows of it: delivery is at least once, and the helper
// on the host sees to it that it is executed at most once.

import type { MayBeForged } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'

/** No task lives longer, so that hosts can forget the ids that they have seen. */
export const taskLifeLimitMs = 24 * 3_600_000

export const usualTaskLifeMs = 3_600_000

/** How long a task that has ended stays in the store; the journal keeps its story. */
export const endedTaskKeptMs = 7 * taskLifeLimitMs

/** How long the plane waits for a result after a task has expired, beside the clock tolerance of the domain. */
export const resultAwaitedMs = 10 * 60_000

/** Of a node at once. A host that hangs holds up no more than these. */
export const mostDispatched = 4
/** Of these: the last place is an operator's, however long tasks of workers run. */
export const mostDispatchedOfWorkers = 3
export const mostQueuedOfNode = 1000
export const mostQueued = 100_000
/** Of the places above, at a node and in the domain: those of all workers together, and those of one issuer. The others are for operators. */
export const shareOfWorkers = 1 / 2
export const shareOfIssuer = 1 / 4

/** `task_` and 26 characters of lower-case base32. */
export type TaskId = string

export type Task = MayBeForged & {
  readonly id: TaskId
  readonly node: NodeId
  /** Of the node when it was queued. In another epoch it is cancelled. */
  readonly epoch: number
  readonly type: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly queuedBy: TaskQueuer
  /** Null: it was queued for itself. */
  readonly rollout: string | null
  readonly createdAtMs: number
  /** At most `taskLifeLimitMs` after that. */
  readonly expiresAtMs: number
  readonly correlation: string
  readonly state: TaskState
}

/** Tasks of one lane leave in the order in which they were queued, and the lanes of a node take turns. A queuer is in one of them. */
export type Lane = 'operator' | 'worker'

/** `id`: of the operator key or of the worker. */
export type TaskQueuer = { readonly kind: Lane; readonly id: string; readonly name: string }

export type TaskState =
  | { readonly kind: 'queued' }
  | Claimed<'dispatched'>
  | TaskEnded
  | { readonly kind: 'expired'; readonly atMs: number }
  | { readonly kind: 'cancelled'; readonly atMs: number; readonly by: string; readonly why: string }

/** Bound to the identity that it was sent to. */
export type Claimed<K extends string> = {
  readonly kind: K
  readonly dispatchedAtMs: number
  readonly epoch: number
  /** SHA-256 of the certificate that claimed it, hex. */
  readonly fingerprint: string
  /** The key that signed when it was dispatched. What is sent again is signed by the one that signs then. */
  readonly signer: string
  readonly counter: number
  readonly issuedAtMs: number
}

export type TaskEnded = Claimed<'completed' | 'failed' | 'unknown'> & {
  readonly endedAtMs: number
  readonly result: TaskResult
}

export type TaskResult = {
  /** Null: it ran to its end. Else a fault of the host (wire/tasks/task-faults.ts), or `NO_ANSWER`. */
  readonly code: string | null
  readonly exitCode: number | null
  /** One sentence. */
  readonly detail: string | null
  readonly output: { readonly head: string; readonly tail: string; readonly bytes: number } | null
  readonly startedAtMs: number | null
  readonly evidence: Readonly<Record<string, unknown>> | null
}

export const taskStates = [
  'queued',
  'dispatched',
  'completed',
  'failed',
  'expired',
  'cancelled',
  'unknown',
] as const satisfies readonly TaskState['kind'][]

/** What was handed out to a node: the counter of its last envelope, how many of its tasks are open, and whose turn it is. */
export type TaskLine = {
  readonly node: NodeId
  readonly counter: number
  readonly queued: number
  readonly dispatched: number
  readonly dispatchedOfWorkers: number
  /** Whose task was dispatched last; null: none was. */
  readonly lastOf: Lane | null
  /** How many of the queued ones are of workers, by the names of their issuers; an issuer without any is not in it. */
  readonly queuedOf: Readonly<Record<string, number>>
}

export const emptyLine = (node: NodeId): TaskLine => ({
  ...{ node, counter: 0, queued: 0, dispatched: 0, dispatchedOfWorkers: 0, lastOf: null, queuedOf: {} },
})

/** The plane's own word for a result that never came. */
export const noAnswer = 'NO_ANSWER'

export const noResult = (detail: string): TaskResult => ({
  code: noAnswer,
  exitCode: null,
  detail,
  output: null,
  startedAtMs: null,
  evidence: null,
})

/** Null while it is open. */
export const endedAtMs = ({ state }: Pick<Task, 'state'>): number | null => {
  switch (state.kind) {
    case 'queued':
    case 'dispatched':
      return null
    case 'completed':
    case 'failed':
    case 'unknown':
      return state.endedAtMs
    case 'expired':
    case 'cancelled':
      return state.atMs
  }
}

// What the store finds tasks by.

const digits = 15

/** Sorts by time, then by id. */
const timedKey = (atMs: number, id: TaskId): string => `${String(atMs).padStart(digits, '0')}/${id}`

/** Its place among all tasks, oldest first. */
export const taskPlace = ({ createdAtMs, id }: Pick<Task, 'createdAtMs' | 'id'>): string => timedKey(createdAtMs, id)

/** When the plane has to look at it again, as a key that sorts; null: it has ended. */
export const taskDue = (task: Task): string | null =>
  endedAtMs(task) === null ? timedKey(task.expiresAtMs, task.id) : null

/** Of a key that `taskDue` made: up to which one everything is due. */
export const dueUpTo = (nowMs: number): string => timedKey(nowMs, '~')

/** Of those that wait the lane, by which the next one is found. */
export const taskLane = ({ state, queuedBy }: Pick<Task, 'state' | 'queuedBy'>): Lane | null =>
  state.kind === 'queued' ? queuedBy.kind : null

export const queuerKey = ({ kind, id }: Pick<TaskQueuer, 'kind' | 'id'>): string => `${kind}:${id}`
