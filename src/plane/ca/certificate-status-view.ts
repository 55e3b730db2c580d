import type { FoundStatus } from './certificate-status-of.ts'
import { isoTime } from '#platform/clock.ts'
import type { CertificateStatusView } from '#wire/ca/certificate-status-api.ts'

export const certificateStatusView = (serial: string, { record, status }: FoundStatus): CertificateStatusView => {
  const node = record?.subject.kind === 'node' ? record.subject : null
  return {
    serial,
    status: status.kind,
    revoked_at: status.kind === 'revoked' ? isoTime(status.atMs) : null,
    reason: status.kind === 'revoked' ? status.reason : null,
    issuer: record === null ? null : record.issuer,
    node: node === null ? null : node.node,
    epoch: node === null ? null : node.epoch,
    issued_at: record === null ? null : isoTime(record.issuedAtMs),
    not_after: record === null ? null : isoTime(record.notAfterMs),
  }
}
