// Who vouches for workers, as operators set it up.

import { Type, type Static } from 'typebox'
import { builtIn } from '#domain/core/profile.ts'
import {
  signerOf,
  type KeySource,
  type WorkerIssuer,
  type WorkerIssuerSettings,
} from '#domain/workers/worker-issuer.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NameText, orNull, text } from '#wire/core/shapes.ts'

export const WorkerIssuerName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$' })
const TaskTypes = Type.Array(Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }), { maxItems: 64 })
const VClusters = Type.Array(NameText, { maxItems: 256 })
const Jwks = text(65_536)
const Ca = text(32_768)
const Url = Type.String({ pattern: '^https://[^@\\s]+$', maxLength: 512 })

const trusted = { iss: text(512), aud: text(256), sub: text(256) }
/** Who signs the certificates of its workers: `built-in`, or the name of an outside issuer. */
const signing = { signed_by: Type.Optional(Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$' })) }
const allowed = { types: TaskTypes, vclusters: VClusters }
/** Either `jwks`, or `jwks_url` with `ca`. */
const keys = { jwks: Type.Optional(Jwks), jwks_url: Type.Optional(Url), ca: Type.Optional(Ca) }

export const CreateWorkerIssuerRequest = Type.Object(
  { name: WorkerIssuerName, ...trusted, ...keys, ...allowed, ...signing },
  closed,
)
export type CreateWorkerIssuerRequest = Static<typeof CreateWorkerIssuerRequest>

export const ChangeWorkerIssuerRequest = Type.Object(
  {
    iss: Type.Optional(trusted.iss),
    aud: Type.Optional(trusted.aud),
    sub: Type.Optional(trusted.sub),
    ...keys,
    types: Type.Optional(TaskTypes),
    vclusters: Type.Optional(VClusters),
    ...signing,
  },
  closed,
)
export type ChangeWorkerIssuerRequest = Static<typeof ChangeWorkerIssuerRequest>

export const WorkerIssuerView = Type.Object({
  name: Type.String(),
  iss: Type.String(),
  aud: Type.String(),
  sub: Type.String(),
  /** Null: its keys are those that an operator gave. */
  jwks_url: orNull(Type.String()),
  types: Type.Array(Type.String()),
  vclusters: Type.Array(Type.String()),
  /** Left out by planes before 0.7. */
  signed_by: Type.Optional(Type.String()),
  created_at: Type.String(),
  created_by: Type.String(),
  /** As this replica has them. `trouble`: why they could not be fetched the last time. */
  keys: Type.Object({
    count: Type.Integer(),
    fetched_at: orNull(Type.String()),
    trouble: orNull(Type.String()),
  }),
})
export type WorkerIssuerView = Static<typeof WorkerIssuerView>

export const workerIssuerView = (
  issuer: WorkerIssuer,
  keys: { readonly keys: number; readonly fetchedAtMs: number | null; readonly trouble: string | null },
): WorkerIssuerView => ({
  name: issuer.name,
  iss: issuer.iss,
  aud: issuer.aud,
  sub: issuer.sub,
  jwks_url: issuer.keys.kind === 'url' ? issuer.keys.url : null,
  types: [...issuer.types],
  vclusters: [...issuer.vclusters],
  signed_by: signerOf(issuer),
  created_at: isoTime(issuer.createdAtMs),
  created_by: issuer.createdBy,
  keys: { count: keys.keys, fetched_at: isoTimeOrNull(keys.fetchedAtMs), trouble: keys.trouble },
})

type KeyFields = Pick<ChangeWorkerIssuerRequest, 'jwks' | 'jwks_url' | 'ca'>

/** Null: neither is said, or both are. */
export const keySourceOf = ({ jwks, jwks_url: url, ca }: KeyFields): KeySource | null => {
  if (jwks !== undefined) return url === undefined && ca === undefined ? { kind: 'file', document: jwks } : null
  return url !== undefined && ca !== undefined ? { kind: 'url', url, ca } : null
}

/** As a document declares it. */
export const workerIssuerDocument = ({ name, iss, aud, sub, keys, types, vclusters, signedBy }: WorkerIssuer) => ({
  ...{ name, iss, aud, sub },
  ...(keys.kind === 'file' ? { jwks: keys.document } : { jwks_url: keys.url, ca: keys.ca }),
  types: [...types],
  vclusters: [...vclusters],
  // Left out: planes of 0.6 refuse a document with settings that they do not know.
  ...(signedBy !== undefined && { signed_by: signedBy }),
})

export const settingsOf = (
  { iss, aud, sub, types, vclusters, signed_by: signedBy = builtIn }: CreateWorkerIssuerRequest,
  keys: KeySource,
): WorkerIssuerSettings => ({ iss, aud, sub, keys, types, vclusters, signedBy })

export const WorkerIssuerList = Type.Object({ worker_issuers: Type.Array(WorkerIssuerView) })

const IssuerParams = Type.Object({ name: WorkerIssuerName }, closed)

export const workerIssuerApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/worker-issuers',
    access: 'viewer',
    summary: 'The issuers whose tokens make workers',
    answer: WorkerIssuerList,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/worker-issuers/:name',
    access: 'viewer',
    summary: 'One worker issuer, and whether its keys can be fetched',
    params: IssuerParams,
    answer: WorkerIssuerView,
  }),
  add: endpoint({
    method: 'POST',
    path: '/v1/worker-issuers',
    access: 'platform-admin',
    summary: 'Makes workers of the bearers of its tokens from now on',
    body: CreateWorkerIssuerRequest,
    answer: WorkerIssuerView,
  }),
  set: endpoint({
    method: 'PATCH',
    path: '/v1/worker-issuers/:name',
    access: 'platform-admin',
    summary: 'Changes a worker issuer; with another issuer or subject its workers are refused from now on',
    params: IssuerParams,
    body: ChangeWorkerIssuerRequest,
    answer: WorkerIssuerView,
  }),
  remove: endpoint({
    method: 'POST',
    path: '/v1/worker-issuers/:name/remove',
    access: 'platform-admin',
    summary: 'Its tokens make no workers any more, and those that are there are refused from now on',
    params: IssuerParams,
    body: EmptyRequest,
    answer: WorkerIssuerView,
  }),
}
