// Who queued a task, with the rights that are on record now. A decision relies on the rows that say so.

import { forgedWords, readOf } from '#domain/core/change.ts'
import { issuerInId } from '#domain/core/principal.ts'
import { isExpired } from '#domain/operators/operator-keys.ts'
import { isOfIssuer, workerEndsMs } from '#domain/workers/worker.ts'
import { queuerKey, type TaskQueuer } from '#domain/tasks/task.ts'
import type { OnRecord } from '#domain/tasks/task-policy.ts'
import type { Core } from '#plane/core/core.ts'

type Reading = { readonly store: Pick<Core['store'], 'get' | 'list'>; readonly clock: Core['clock'] }

export const queuerOnRecord = async (core: Reading, queuer: Pick<TaskQueuer, 'kind' | 'id'>): Promise<OnRecord> => {
  switch (queuer.kind) {
    case 'operator':
      return operatorOnRecord(core, queuer.id, 'queued')
    case 'worker':
      return workerOnRecord(core, queuer.id)
  }
}

/** Who applied the plan of a rollout. */
export const applierOnRecord = (core: Reading, { id }: Pick<TaskQueuer, 'id'>): Promise<OnRecord> =>
  operatorOnRecord(core, id, 'applied')

/** Whose runs count together: those of an operator key, and those of all workers of an issuer. */
export const tallyOf = async ({ get }: Pick<Core['store'], 'get'>, { kind, id }: Pick<TaskQueuer, 'kind' | 'id'>) => {
  const of = kind === 'worker' ? `worker-issuer:${issuerInId(id)}` : queuerKey({ kind, id })
  return { of, row: await get('run-tally', of) }
}

const operatorOnRecord = async (
  { store, clock }: Reading,
  id: string,
  did: 'queued' | 'applied',
): Promise<OnRecord> => {
  const [found] = await store.list('operator-key', { where: { id }, after: null, limit: 1 })
  if (found === undefined) return { reads: [], caller: `the operator key that ${did} it is not on record` }
  const { name, role, hash, revokedAtMs } = found.value
  const reads = [readOf('operator-key', hash, found)]
  if (revokedAtMs !== null) return { reads, caller: `the operator key that ${did} it was revoked: ${name}` }
  if (isExpired(found.value, clock.nowMs()))
    return { reads, caller: `the operator key that ${did} it has expired: ${name}` }
  return { reads, caller: { kind: 'operator', id, name, role } }
}

const workerOnRecord = async ({ store, clock }: Reading, id: string): Promise<OnRecord> => {
  const worker = await store.get('worker', id)
  if (worker === null) return { reads: [], caller: 'the worker that queued it is not on record' }
  const name = worker.value.issuer
  const issuer = await store.get('worker-issuer', name)
  const reads = [readOf('worker', id, worker), readOf('worker-issuer', name, issuer)]
  if (worker.value.forged) return { reads, caller: `${id}: ${forgedWords}` }
  const endsMs = workerEndsMs(worker.value)
  if (endsMs === null) return { reads, caller: `the worker that queued it was revoked: ${id}` }
  if (clock.nowMs() >= endsMs) return { reads, caller: `the certificate of the worker that queued it has ended: ${id}` }
  if (issuer === null || !isOfIssuer(worker.value, issuer.value))
    return { reads, caller: `the issuer of the worker that queued it has ended: ${name}` }
  const { types, vclusters } = issuer.value
  return { reads, caller: { kind: 'worker', id, name: id, types, vclusters } }
}
