// What workers call: how a program in a cluster gets its certificate, and renews it.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, text } from '#wire/core/shapes.ts'

export const workerIdShape = '^[a-z0-9][a-z0-9-]{0,31}\\.[0-9a-z][0-9a-z-]{6,42}[0-9a-z]$'
export const WorkerIdText = Type.String({ pattern: workerIdShape, maxLength: 77 })

/** `POST /v1/workers/enroll`, and `renew`. Of the certificate request only the public key is taken. */
export const WorkerCertificateRequest = Type.Object({ token: text(8192), csr: text(16_384) }, closed)

export const WorkerCertificate = Type.Object({
  worker_id: Type.String(),
  /** PEM: the certificate, then its issuers, without the root. */
  certificate_chain: Type.String(),
  /** PEM of the roots that the plane is verified with. */
  roots: Type.Array(Type.String()),
  not_after: Type.String(),
  server_time: Type.String(),
})
export type WorkerCertificate = Static<typeof WorkerCertificate>

/** `GET /v1/workers/ID/certificate`: of the certificate that the caller came with. */
const WorkerStanding = Type.Object({
  worker_id: Type.String(),
  not_after: Type.String(),
  server_time: Type.String(),
})

export const workerApi = {
  enroll: endpoint({
    method: 'POST',
    path: '/v1/workers/enroll',
    access: 'anyone',
    summary: 'The certificate of a worker, for a service-account token of a worker issuer',
    body: WorkerCertificateRequest,
    answer: WorkerCertificate,
  }),
  renew: endpoint({
    method: 'POST',
    path: '/v1/workers/:worker/renew',
    access: 'worker',
    summary: 'The next certificate of a worker, for its certificate and a token of the same pod that holds now',
    params: Type.Object({ worker: WorkerIdText }, closed),
    body: WorkerCertificateRequest,
    answer: WorkerCertificate,
  }),
  current: endpoint({
    method: 'GET',
    path: '/v1/workers/:worker/certificate',
    access: 'worker',
    summary: 'Whether the plane takes the certificate of a worker, and until when; changes nothing',
    params: Type.Object({ worker: WorkerIdText }, closed),
    answer: WorkerStanding,
  }),
}
