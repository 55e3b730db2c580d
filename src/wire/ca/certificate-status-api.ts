// Whether certificates still hold, as operators ask for it. Others ask the status listener.

import { Type, type Static } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, orNull } from '#wire/core/shapes.ts'
import type { CertificateStatus } from '#domain/ca/certificate-status.ts'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { isoTime } from '#platform/clock.ts'

/** `GET /v1/ca/crl` */
export const CrlQuery = Type.Object(
  {
    /** As `GET /v1/ca` names it. Left out: whichever signs now. */
    issuer: Type.Optional(Type.String({ pattern: '^[0-9a-f]{1,64}$' })),
    /** Only what was revoked since the full list before last. */
    delta: Type.Optional(Type.Boolean()),
  },
  closed,
)
export type CrlQuery = Static<typeof CrlQuery>

export const CrlAnswer = Type.Object({
  issuer: Type.String(),
  number: Type.Integer(),
  /** Null: a full list. */
  base_number: orNull(Type.Integer()),
  this_update: Type.String(),
  next_update: Type.String(),
  entries: Type.Integer(),
  /** PEM. */
  crl: Type.String(),
})
export type CrlAnswer = Static<typeof CrlAnswer>

/** `GET /v1/ca/certificates/:serial` */
const SerialParams = Type.Object({ serial: Type.String({ pattern: '^(0|[1-9a-f][0-9a-f]{0,39})$' }) }, closed)

export const CertificateStatusView = Type.Object({
  serial: Type.String(),
  status: Type.Union([Type.Literal('good'), Type.Literal('revoked'), Type.Literal('unknown')]),
  revoked_at: orNull(Type.String()),
  reason: orNull(Type.String()),
  /** What follows is null where it is not in the store. */
  issuer: orNull(Type.String()),
  /** Null for a certificate of the plane itself too. */
  node: orNull(Type.String()),
  epoch: orNull(Type.Integer()),
  issued_at: orNull(Type.String()),
  not_after: orNull(Type.String()),
})
export type CertificateStatusView = Static<typeof CertificateStatusView>

/** `row` null: no certificate of this serial number is in the store. */
export const certificateStatusView = (
  serial: string,
  { row, status }: { readonly row: CertificateRow | null; readonly status: CertificateStatus },
): CertificateStatusView => {
  const node = row?.subject.kind === 'node' ? row.subject : null
  return {
    serial,
    status: status.kind,
    revoked_at: status.kind === 'revoked' ? isoTime(status.atMs) : null,
    reason: status.kind === 'revoked' ? status.reason : null,
    issuer: row === null ? null : row.issuer,
    node: node === null ? null : node.node,
    epoch: node === null ? null : node.epoch,
    issued_at: row === null ? null : isoTime(row.issuedAtMs),
    not_after: row === null ? null : isoTime(row.notAfterMs),
  }
}

export const certificateStatusApi = {
  crl: endpoint({
    method: 'GET',
    path: '/v1/ca/crl',
    access: 'viewer',
    summary: 'The revocation list of an issuing CA, full or delta',
    query: CrlQuery,
    answer: CrlAnswer,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/ca/certificates/:serial',
    access: 'viewer',
    summary: 'Whether a certificate of ours still holds',
    params: SerialParams,
    answer: CertificateStatusView,
  }),
}
