// Rollouts, between operators and the plane. One begins with a plan (wire/plans/plan-api.ts, `create-tasks`).

import { Type, type Static } from 'typebox'
import { failuresOf, rolloutStates, type Rollout, type TaskCounts } from '#domain/tasks/rollout.ts'
import { taskStates } from '#domain/tasks/task.ts'
import { isoTime } from '#platform/clock.ts'
import { recordOf } from '#platform/json-schema.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, IdParams, oneOf, orNull } from '#wire/core/shapes.ts'
import { CancelTaskRequest, mostTaskWaitMs } from './task-api.ts'

export const RolloutView = Type.Object({
  id: Type.String(),
  type: Type.String(),
  parameters: recordOf(Type.String(), Type.Unknown()),
  state: oneOf(rolloutStates),
  /** Why it is held, or was cancelled; of a running one, what keeps its next task from being made. */
  why: orNull(Type.String()),
  /** Who began it. */
  by: Type.String(),
  created_at: Type.String(),
  concurrency: Type.Integer(),
  failure_limit: Type.Integer(),
  nodes: Type.Integer(),
  /** How many of them it has come to. */
  reached: Type.Integer(),
  /** How many of those got no task, because the rules forbade it by then or too many waited for the node already. */
  refused: Type.Integer(),
  /** Which of them were the last, and why. */
  last_refused: orNull(Type.String()),
  /** Failed, unknown, expired and refused ones. */
  failures: Type.Integer(),
  /** Its tasks by their states. */
  tasks: Type.Object(Object.fromEntries(taskStates.map((state) => [state, Type.Integer()]))),
  correlation: Type.String(),
})
export type RolloutView = Static<typeof RolloutView>

const RolloutListQuery = Type.Object(
  {
    after: Type.Optional(IdParams.properties.id),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  closed,
)
export type RolloutListQuery = Static<typeof RolloutListQuery>
export const RolloutListAnswer = Type.Object({ rollouts: Type.Array(RolloutView), next: orNull(Type.String()) })

const RolloutShowQuery = Type.Object(
  { wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: mostTaskWaitMs })) },
  closed,
)

export const rolloutView = (rollout: Rollout, counts: TaskCounts): RolloutView => {
  const { id, type, parameters, state, by, createdAtMs, concurrency, failureLimit, nodes } = rollout
  const { reached, refused, correlation } = rollout
  return {
    ...{ id, type, parameters: { ...parameters }, state: state.kind, why: whyOf(rollout), by },
    created_at: isoTime(createdAtMs),
    ...{ concurrency, failure_limit: failureLimit, nodes, reached, refused, last_refused: rollout.lastRefused },
    ...{ failures: failuresOf(rollout, counts), tasks: { ...counts }, correlation },
  }
}

const whyOf = ({ state, stalledBy }: Rollout): string | null => {
  switch (state.kind) {
    case 'running':
      return stalledBy
    case 'held':
    case 'cancelled':
      return state.why
    case 'done':
      return null
  }
}

export const rolloutApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/rollouts',
    access: 'viewer',
    summary: 'Rollouts, oldest first and page by page',
    query: RolloutListQuery,
    answer: RolloutListAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/rollouts/:id',
    access: 'viewer',
    summary: 'One rollout with the states of its tasks; with wait_ms, waits until it goes on',
    params: IdParams,
    query: RolloutShowQuery,
    answer: RolloutView,
  }),
  resume: endpoint({
    method: 'POST',
    path: '/v1/rollouts/:id/resume',
    access: 'operator',
    summary: 'Lets a held rollout go on; what has failed until now does not count against its limit any more',
    params: IdParams,
    body: EmptyRequest,
    answer: RolloutView,
  }),
  cancel: endpoint({
    method: 'POST',
    path: '/v1/rollouts/:id/cancel',
    access: 'operator',
    summary: 'Cancels a rollout and its tasks that wait; what was sent to a node cannot be called back',
    params: IdParams,
    body: CancelTaskRequest,
    answer: RolloutView,
  }),
}
