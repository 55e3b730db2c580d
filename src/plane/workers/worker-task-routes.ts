// Tasks, as workers queue and read them.

import type { WorkerPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import { openRateLimit, type RateLimit } from '#plane/limits/rate-limit.ts'
import { queueTask, type QueueParts } from '#plane/tasks/queue-task.ts'
import { taskView } from '#wire/tasks/task-api.ts'
import { workerTaskApi } from '#wire/workers/worker-task-api.ts'

/** Each is a task in the store and entries in the journal, for good: a worker that loops must not fill the disk of the plane. */
const queuedPerMinute = { worker: 120, issuer: 600 }

type WorkerTaskParts = QueueParts & { readonly queueLimit: WorkerQueueLimit }

export const workerTaskRoutes = (core: FlowCore, parts: WorkerTaskParts): readonly Route[] =>
  serve(workerTaskApi, {
    queue: async (call) => {
      const { principal, correlation, body } = call
      const limited = parts.queueLimit(principal)
      if (limited !== null) return limited
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

/** Null: go on. Called once for every call that queues. */
export type WorkerQueueLimit = (worker: Pick<WorkerPrincipal, 'id' | 'issuer'>) => Refusal | null

/** `replicas`: over how many a worker may spread what it asks for; together they allow what one does. */
export const openWorkerQueueLimit = (clock: Clock, replicas: () => number): WorkerQueueLimit => {
  const limitOf = (perMinute: number): RateLimit =>
    openRateLimit(clock, () => ({
      perMinute: Infinity,
      perMinutePerKey: Math.ceil(perMinute / replicas()),
    }))
  const [ofWorker, ofIssuer] = [limitOf(queuedPerMinute.worker), limitOf(queuedPerMinute.issuer)]
  return ({ id, issuer }) => {
    const over = (who: string, { retryAfterMs }: RateLimit): Refusal => ({
      ...refuse('RATE_LIMITED', `${who} has queued very many tasks within a minute`),
      retryAfterMs: retryAfterMs(),
    })
    if (ofWorker.take(id) === 'over') return over('this worker', ofWorker)
    return ofIssuer.take(issuer) === 'over' ? over(`the workers of ${issuer} together`, ofIssuer) : null
  }
}
