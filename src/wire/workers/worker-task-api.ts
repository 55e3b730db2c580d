// Tasks that workers queue: what their issuer allows, and their own ones only.

import { Type } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed } from '#wire/core/shapes.ts'
import { QueueTaskRequest, TaskIdText, TaskView } from '#wire/tasks/task-api.ts'

export const workerTaskApi = {
  queue: endpoint({
    method: 'POST',
    path: '/v1/worker-tasks',
    access: 'worker',
    summary: 'Queues a task of a type and in a vCluster of its issuer; safe to repeat with the same idempotency key',
    body: QueueTaskRequest,
    answer: TaskView,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/worker-tasks/:id',
    access: 'worker',
    summary: 'A task that the worker has queued itself, with its result',
    params: Type.Object({ id: TaskIdText }, closed),
    answer: TaskView,
  }),
}
