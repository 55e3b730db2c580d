// Who queued a task, with the rights that are on record now. A decision relies on the rows that say so.

import { readOf } from '#domain/core/change.ts'
import { isExpired } from '#domain/operators/operator-keys.ts'
import { isOfIssuer, workerEndsMs } from '#domain/workers/worker.ts'
import type { TaskQueuer } from '#domain/tasks/task.ts'
import type { OnRecord } from '#domain/tasks/task-policy.ts'
import type { Core } from '#plane/core/core.ts'

type Reading = { readonly store: Pick<Core['store'], 'get' | 'list'>; readonly clock: Core['clock'] }

export const queuerOnRecord = async (core: Reading, queuer: Pick<TaskQueuer, 'kind' | 'id'>): Promise<OnRecord> => {
  switch (queuer.kind) {
    case 'operator':
      return operatorOnRecord(core, queuer.id)
    case 'worker':
      return workerOnRecord(core, queuer.id)
  }
}

const operatorOnRecord = async ({ store, clock }: Reading, id: string): Promise<OnRecord> => {
  const [found] = await store.list('operator-key', { where: { id }, after: null, limit: 1 })
  if (found === undefined) return { reads: [], caller: 'the operator key that queued it is not on record' }
  const { name, role, hash, revokedAtMs } = found.value
  const reads = [readOf('operator-key', hash, found)]
  if (revokedAtMs !== null) return { reads, caller: `the operator key that queued it was revoked: ${name}` }
  if (isExpired(found.value, clock.nowMs()))
    return { reads, caller: `the operator key that queued it has expired: ${name}` }
  return { reads, caller: { kind: 'operator', id, name, role } }
}

const workerOnRecord = async ({ store, clock }: Reading, id: string): Promise<OnRecord> => {
  const worker = await store.get('worker', id)
  if (worker === null) return { reads: [], caller: 'the worker that queued it is not on record' }
  const name = worker.value.issuer
  const issuer = await store.get('worker-issuer', name)
  const reads = [readOf('worker', id, worker), readOf('worker-issuer', name, issuer)]
  const endsMs = workerEndsMs(worker.value)
  if (endsMs === null) return { reads, caller: `the worker that queued it was revoked: ${id}` }
  if (clock.nowMs() >= endsMs) return { reads, caller: `the certificate of the worker that queued it has ended: ${id}` }
  if (issuer === null || !isOfIssuer(worker.value, issuer.value))
    return { reads, caller: `the issuer of the worker that queued it has ended: ${name}` }
  const { types, vclusters } = issuer.value
  return { reads, caller: { kind: 'worker', id, name: id, types, vclusters } }
}
