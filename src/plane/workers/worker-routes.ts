// The calls of workers on the node listener.

import { isRefusal } from '#domain/core/refusal.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { answer, serve, type CallOf, type Route } from '#plane/http/route.ts'
import { isoTime } from '#platform/clock.ts'
import { workerApi } from '#wire/workers/worker-api.ts'
import { enrollWorker, renewWorker, type EnrollWorkerParts, type WorkerCall } from './enroll-worker.ts'

export const workerRoutes = (core: FlowCore, parts: EnrollWorkerParts): readonly Route[] =>
  serve(workerApi, {
    enroll: async (call) => {
      const outcome = await enrollWorker(core, parts, callOf(call))
      return isRefusal(outcome) ? outcome : answer(outcome)
    },
    renew: async (call) => {
      const outcome = await renewWorker(core, parts, call.principal, callOf(call))
      return isRefusal(outcome) ? outcome : answer(outcome)
    },
    // Whoever gets here was let in: a worker that is revoked is refused before.
    current: async ({ principal }) =>
      answer({
        worker_id: principal.id,
        not_after: isoTime(principal.notAfterMs),
        server_time: isoTime(core.clock.nowMs()),
      }),
  })

const callOf = ({
  principal,
  body,
  correlation,
}: CallOf<typeof workerApi.enroll> | CallOf<typeof workerApi.renew>): WorkerCall => ({
  token: body.token,
  csr: body.csr,
  source: principal.source,
  correlation,
})
