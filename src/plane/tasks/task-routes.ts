// Tasks: what operators queue and look at, and what nodes wait for and report.

import { refuse, refuseField } from '#domain/core/refusal.ts'
import { isTaskType, shippedTaskTypes } from '#domain/core/task-types.ts'
import { endedAtMs, taskPlace, type Task } from '#domain/tasks/task.ts'
import { closestTo } from '#platform/closest-word.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { takesTasks, type OpenChannels } from '#plane/core/open-channels.ts'
import { answer, attributionOf, serve, type CallOf, type Route } from '#plane/http/route.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { taskApi, taskLineView, taskView, type TaskListQuery, type TaskView } from '#wire/tasks/task-api.ts'
import { taskNodeApi, usualWaitSeconds } from '#wire/tasks/task-node-api.ts'
import type { TaskPolls } from './poll-tasks.ts'
import type { QueueLength } from './queue-length.ts'
import { cancelTask, queueTask } from './queue-task.ts'
import { takeResult } from './take-result.ts'

export type OperatorTaskParts = {
  readonly queueLength: QueueLength
  readonly arrivals: Arrivals
  readonly channels: Pick<OpenChannels, 'everySession'>
}

export const operatorTaskRoutes = (core: Core, parts: OperatorTaskParts): readonly Route[] =>
  serve(taskApi, {
    create: async (call) => {
      const { principal, correlation, body } = call
      const queuer = { kind: 'operator', id: principal.id } as const
      const done = await queueTask(core, parts, { request: body, queuer, by: attributionOf(call), correlation })
      return done.kind === 'refused' ? done : answer(await waitingView(parts, done.task), done.fresh ? 201 : 200)
    },
    list: (call) => listTasks(core.store, call.query),
    show: (call) => showTask(core.store, parts, call),
    cancel: async (call) => {
      const { reason = 'cancelled by an operator' } = call.body
      const done = await cancelTask(core, call.params.id, reason, attributionOf(call))
      return done.kind === 'refused' ? done : answer(taskView(done.task))
    },
  })

/** With why it waits, where that is known of its node. */
const waitingView = async ({ channels }: Pick<OperatorTaskParts, 'channels'>, task: Task): Promise<TaskView> => {
  const view = taskView(task)
  if (task.state.kind !== 'queued' || takesTasks(await channels.everySession(task.node)) !== false) return view
  const why = 'it has no helper, or its agent.toml has no [tasks]'
  return { ...view, waits_because: `${task.node} is connected and takes no tasks: ${why}; docs/TASKS.md, On the host` }
}

const usualPage = 100

const listTasks = async (store: Store, query: TaskListQuery) => {
  const { node, state, type, rollout, after = null, limit = usualPage } = query
  if (type !== undefined && !isTaskType(type)) return refuseField('REQUEST_INVALID', 'type', unknownType(type))
  const where = { ...(node && { node }), ...(state && { state }), ...(type && { type }), ...(rollout && { rollout }) }
  const rows = await store.list('task', { where, order: 'sort_key', after, limit })
  if (node !== undefined && rows.length === 0 && (await store.get('node', node)) === null)
    return refuse('NODE_NOT_FOUND', node)
  if (rollout !== undefined && rows.length === 0 && (await store.get('task-rollout', rollout)) === null)
    return refuse('ROLLOUT_NOT_FOUND', rollout)
  const last = rows.length < limit ? undefined : rows.at(-1)
  return answer({
    tasks: rows.map(({ value }) => taskLineView(value)),
    next: last === undefined ? null : taskPlace(last.value),
  })
}

const unknownType = (type: string): string => {
  const meant = closestTo(type, shippedTaskTypes)
  const guess = meant === null ? '' : `did you mean ${meant}? `
  return `${guess}there are ${shippedTaskTypes.join(', ')}, and types of hosts, which begin with x-`
}

/** With `wait_ms`: answered when it has ended, or the time is over. */
const showTask = async (store: Store, parts: OperatorTaskParts, call: CallOf<typeof taskApi.show>) => {
  const { id } = call.params
  const { wait_ms: waitMs = 0 } = call.query
  const before = await store.get('task', id)
  if (before === null) return refuse('TASK_NOT_FOUND', id)
  if (waitMs === 0 || endedAtMs(before.value) !== null) return answer(await waitingView(parts, before.value))
  const arrival = parts.arrivals.expect(
    ({ type, body }) => type.startsWith('task.') && body['task'] === id && !isOpen(type),
  )
  if (arrival.kind === 'refused') return arrival
  try {
    // Registered first, then read: it may have ended in between.
    const now = await store.get('task', id)
    if (now !== null && endedAtMs(now.value) === null) await arrival.within(waitMs)
    const found = await store.get('task', id)
    return found === null ? refuse('TASK_NOT_FOUND', id) : answer(await waitingView(parts, found.value))
  } finally {
    arrival.cancel()
  }
}

const isOpen = (type: string): boolean => type === 'task.queued' || type === 'task.dispatched'

export const nodeTaskRoutes = (core: FlowCore, polls: TaskPolls): readonly Route[] =>
  serve(taskNodeApi, {
    wait: async (call) => {
      const { principal, evidence, correlation } = call
      const { wait = usualWaitSeconds } = call.query
      const found = await polls.wait({ principal, evidence, correlation }, wait * 1000)
      return 'kind' in found ? found : answer({ tasks: found.map((task) => ({ task })) })
    },
    result: async (call) => {
      const { principal, correlation, params, body } = call
      const taken = await takeResult(core, { principal, task: params.task, body, correlation })
      return taken.kind === 'refused' ? taken : answer({ state: taken.task.state.kind })
    },
  })
