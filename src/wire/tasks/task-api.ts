// Tasks, between those who queue them and the plane. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { endedAtMs, taskStates, type Task, type TaskResult } from '#domain/tasks/task.ts'
import { isoTime } from '#platform/clock.ts'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, oneOf, orNull } from '#wire/core/shapes.ts'
import { taskIdShape, taskStatementLifeMs, taskTypeShape } from '#wire/core/task-statements.ts'

export const TaskIdText = Type.String({ pattern: taskIdShape })
const TypeText = Type.String({ pattern: taskTypeShape })
const Parameters = recordOf(Type.String({ maxLength: 64 }), Type.Unknown(), { maxProperties: 64 })

const leastLifeMs = 1000

/** What is queued, for one node or for many. */
export const ManyTasks = {
  type: TypeText,
  parameters: Type.Optional(Parameters),
  /** How long it may wait for its node. Without it: 1 h. */
  expires_in_ms: Type.Optional(Type.Integer({ minimum: leastLifeMs, maximum: taskStatementLifeMs })),
}

/** `POST /v1/tasks`. With an idempotency key it is safe to repeat: the same task is answered, also once it has ended. */
export const QueueTaskRequest = Type.Object(
  {
    node: NodeIdText,
    ...ManyTasks,
    /** Of the caller's own choice; names one task for one node. */
    idempotency_key: Type.Optional(Type.String({ pattern: '^[!-~]{1,128}$' })),
  },
  closed,
)
export type QueueTaskRequest = Static<typeof QueueTaskRequest>

const Line = {
  id: Type.String(),
  node: Type.String(),
  type: Type.String(),
  state: oneOf(taskStates),
  queued_by: Type.Object({ kind: Type.String(), id: Type.String(), name: Type.String() }),
  /** Null: it was queued for itself. */
  rollout: orNull(Type.String()),
  created_at: Type.String(),
  expires_at: Type.String(),
  ended_at: orNull(Type.String()),
  /** Why it did not run, or not to its end. */
  code: orNull(Type.String()),
  exit_code: orNull(Type.Integer()),
}
export const TaskLineView = Type.Object(Line)
export type TaskLineView = Static<typeof TaskLineView>

export const TaskView = Type.Object({
  ...Line,
  epoch: Type.Integer(),
  parameters: recordOf(Type.String(), Type.Unknown()),
  correlation: Type.String(),
  /** Why it waits, where its node is connected and does not take tasks. */
  waits_because: Type.Optional(Type.String()),
  /** To whom it was sent; null: it was not. */
  dispatched: orNull(
    Type.Object({
      at: Type.String(),
      epoch: Type.Integer(),
      /** `sha256:` and the SHA-256 of the certificate, in hex. */
      fingerprint: Type.String(),
      signer: Type.String(),
      counter: Type.Integer(),
    }),
  ),
  /** By whom and why it was cancelled. */
  cancelled: orNull(Type.Object({ by: Type.String(), why: Type.String() })),
  /** As its node reported it. Output may hold control characters. */
  result: orNull(
    Type.Object({
      code: orNull(Type.String()),
      exit_code: orNull(Type.Integer()),
      detail: orNull(Type.String()),
      output: orNull(Type.Object({ head: Type.String(), tail: Type.String(), bytes: Type.Integer() })),
      started_at: orNull(Type.String()),
      evidence: orNull(recordOf(Type.String(), Type.Unknown())),
    }),
  ),
})
export type TaskView = Static<typeof TaskView>

/** `GET /v1/tasks`: all that fit, oldest first. */
export const TaskListQuery = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    state: Type.Optional(oneOf(taskStates)),
    type: Type.Optional(TypeText),
    rollout: Type.Optional(Type.String({ pattern: '^[0-9A-Za-z_-]{1,64}$' })),
    after: Type.Optional(Type.String({ pattern: '^[0-9]{15}/task_[a-z2-7]{26}$' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
export type TaskListQuery = Static<typeof TaskListQuery>
export const TaskListAnswer = Type.Object({ tasks: Type.Array(TaskLineView), next: orNull(Type.String()) })

export const mostTaskWaitMs = 25_000

const TaskShowQuery = Type.Object(
  { wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: mostTaskWaitMs })) },
  closed,
)

/** `POST /v1/tasks/{id}/cancel` */
export const CancelTaskRequest = Type.Object(
  { reason: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })) },
  closed,
)

const TaskParams = Type.Object({ id: TaskIdText }, closed)

export const taskLineView = (task: Task): TaskLineView => {
  const { id, node, type, state, queuedBy, rollout, createdAtMs, expiresAtMs } = task
  const ended = endedAtMs(task)
  const result = resultOf(task)
  return {
    ...{ id, node, type, state: state.kind, queued_by: { ...queuedBy }, rollout },
    created_at: isoTime(createdAtMs),
    expires_at: isoTime(expiresAtMs),
    ended_at: ended === null ? null : isoTime(ended),
    code: result === null ? null : result.code,
    exit_code: result === null ? null : result.exitCode,
  }
}

export const taskView = (task: Task): TaskView => {
  const { epoch, parameters, correlation, state } = task
  const result = resultOf(task)
  return {
    ...taskLineView(task),
    ...{ epoch, parameters: { ...parameters }, correlation },
    dispatched:
      'fingerprint' in state
        ? {
            at: isoTime(state.dispatchedAtMs),
            ...{ epoch: state.epoch, signer: state.signer, counter: state.counter },
            fingerprint: `sha256:${state.fingerprint}`,
          }
        : null,
    cancelled: state.kind === 'cancelled' ? { by: state.by, why: state.why } : null,
    result: result === null ? null : resultView(result),
  }
}

const resultOf = ({ state }: Task): TaskResult | null => ('result' in state ? state.result : null)

const resultView = ({ code, exitCode, detail, output, startedAtMs, evidence }: TaskResult) => ({
  ...{ code, exit_code: exitCode, detail, output: output === null ? null : { ...output } },
  started_at: startedAtMs === null ? null : isoTime(startedAtMs),
  evidence: evidence === null ? null : { ...evidence },
})

export const taskApi = {
  create: endpoint({
    method: 'POST',
    path: '/v1/tasks',
    access: 'operator',
    summary: 'Queues a task for a node; safe to repeat with the same idempotency key',
    body: QueueTaskRequest,
    answer: TaskView,
  }),
  list: endpoint({
    method: 'GET',
    path: '/v1/tasks',
    access: 'viewer',
    summary: 'Tasks, oldest first and page by page, without parameters and output',
    query: TaskListQuery,
    answer: TaskListAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/tasks/:id',
    access: 'viewer',
    summary:
      'One task with its result; with wait_ms, waits until it has ended. It stays on record for 7 days after that',
    params: TaskParams,
    query: TaskShowQuery,
    answer: TaskView,
  }),
  cancel: endpoint({
    method: 'POST',
    path: '/v1/tasks/:id/cancel',
    access: 'operator',
    summary: 'Cancels a task that waits for its node; one that was sent to it cannot be called back',
    params: TaskParams,
    body: CancelTaskRequest,
    answer: TaskView,
  }),
}
