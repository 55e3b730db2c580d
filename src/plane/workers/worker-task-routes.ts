// Tasks, as workers queue and read them.

import { refuse } from '#domain/core/refusal.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import { queueTask, type QueueParts } from '#plane/tasks/queue-task.ts'
import { taskView } from '#wire/tasks/task-api.ts'
import { workerTaskApi } from '#wire/workers/worker-task-api.ts'

export const workerTaskRoutes = (core: FlowCore, parts: QueueParts): readonly Route[] =>
  serve(workerTaskApi, {
    queue: async (call) => {
      const { principal, correlation, body } = call
      const queuer = { kind: 'worker', id: principal.id } as const
      const done = await queueTask(core, parts, { request: body, queuer, by: attributionOf(call), correlation })
      return done.kind === 'refused' ? done : answer(taskView(done.task), done.fresh ? 201 : 200)
    },
    // Of another the answer is the same as of one that is not there: which tasks there are is not a worker's to know.
    show: async ({ principal, params }) => {
      const task = await core.store.get('task', params.id)
      const { kind, id } = task?.value.queuedBy ?? { kind: 'operator', id: '' }
      return task === null || kind !== 'worker' || id !== principal.id
        ? refuse('TASK_NOT_FOUND', params.id)
        : answer(taskView(task.value))
    },
  })
