// Workers, as operators see them.

import { Type, type Static } from 'typebox'
import type { Worker } from '#domain/workers/worker.ts'
import { isoTime } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, orNull, oneOf, ReasonRequest } from '#wire/core/shapes.ts'
import { ReceiptView } from '#wire/revocation/receipt-api.ts'
import { WorkerIdText, workerIdShape } from './worker-api.ts'
import { WorkerIssuerName } from './worker-issuer-api.ts'

const workerStates = ['current', 'expired', 'revoked'] as const

export const WorkerView = Type.Object({
  id: Type.String(),
  /** The name of its worker issuer. */
  issuer: Type.String(),
  /** The uid of its pod. */
  instance: Type.String(),
  subject: Type.String(),
  state: oneOf(workerStates),
  enrolled_at: Type.String(),
  certificate: Type.Object({
    issuer: Type.String(),
    serial: Type.String(),
    fingerprint: Type.String(),
    issued_at: Type.String(),
    not_after: Type.String(),
  }),
  revoked: orNull(Type.Object({ at: Type.String(), by: Type.String(), reason: Type.String() })),
})
export type WorkerView = Static<typeof WorkerView>

export const workerView = (worker: Worker, nowMs: number): WorkerView => ({
  id: worker.id,
  issuer: worker.issuer,
  instance: worker.instance,
  subject: worker.sub,
  state: worker.revoked !== null ? 'revoked' : worker.current.notAfterMs > nowMs ? 'current' : 'expired',
  enrolled_at: isoTime(worker.enrolledAtMs),
  certificate: {
    issuer: worker.current.issuer,
    serial: worker.current.serial,
    fingerprint: `sha256:${worker.current.sha256}`,
    issued_at: isoTime(worker.current.issuedAtMs),
    not_after: isoTime(worker.current.notAfterMs),
  },
  revoked:
    worker.revoked === null
      ? null
      : { at: isoTime(worker.revoked.atMs), by: worker.revoked.by, reason: worker.revoked.reason },
})

const WorkerListQuery = Type.Object(
  {
    issuer: Type.Optional(WorkerIssuerName),
    after: Type.Optional(Type.String({ pattern: workerIdShape, maxLength: 77 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)

/** In the order of their ids. */
export const WorkerListAnswer = Type.Object({ workers: Type.Array(WorkerView), next: orNull(Type.String()) })

/** `receipt`: which replicas know that it is over. */
export const WorkerRevokedAnswer = Type.Object({ worker: WorkerView, receipt: ReceiptView })
export type WorkerRevokedAnswer = Static<typeof WorkerRevokedAnswer>

const WorkerParams = Type.Object({ id: WorkerIdText }, closed)

export const workerOperatorApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/workers',
    access: 'viewer',
    summary: 'The workers, by their ids',
    query: WorkerListQuery,
    answer: WorkerListAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/workers/:id',
    access: 'viewer',
    summary: 'One worker',
    params: WorkerParams,
    answer: WorkerView,
  }),
  revoke: endpoint({
    method: 'POST',
    path: '/v1/workers/:id/revoke',
    access: 'operator',
    cutOff: true,
    summary: 'Takes a worker out for good: its certificates are denied at once on every replica, its keys banned',
    params: WorkerParams,
    body: ReasonRequest,
    answer: WorkerRevokedAnswer,
  }),
}
