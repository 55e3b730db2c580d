// Whether a certificate still holds, as others are told who verify it: by OCSP, in revocation lists, by `ca status`.

import {
  certificateDenialKey,
  epochDenialKey,
  issuerDenialKey,
  type CertificateRecord,
  type Denial,
  type DenialReason,
} from './certificate.ts'
import type { IssuerId } from './node.ts'

export type CertificateStatus =
  | { readonly kind: 'good' }
  | { readonly kind: 'revoked'; readonly atMs: number; readonly reason: DenialReason }
  /** Not one of ours, or one that has expired: nothing is said of those. */
  | { readonly kind: 'unknown' }

export type StatusFacts = {
  /** Null: there is none on record. */
  readonly record: CertificateRecord | null
  /** Those `denialKeysFor` names, as far as they exist. */
  readonly denials: readonly Denial[]
  readonly nowMs: number
}

/** The deny-list entries that could be about this certificate. */
export const denialKeysFor = (
  issuer: IssuerId,
  serial: string,
  record: Pick<CertificateRecord, 'subject'> | null,
): readonly string[] => [
  certificateDenialKey(issuer, serial),
  issuerDenialKey(issuer),
  ...(record?.subject.kind === 'node' ? [epochDenialKey(record.subject.node, record.subject.epoch)] : []),
]

/**
 * A denial counts whether or not there is a record: whoever has the key of a withdrawn issuer signs what we have no
 * record of. Of an expired certificate the denial may be forgotten, so that it is never called good.
 */
export const certificateStatus = ({ record, denials, nowMs }: StatusFacts): CertificateStatus => {
  const [first] = denials.map((denial) => revokedBy(denial, record)).sort((a, b) => a.atMs - b.atMs)
  if (first !== undefined) return { kind: 'revoked', ...first }
  return record === null || record.notAfterMs <= nowMs ? { kind: 'unknown' } : { kind: 'good' }
}

/** A denial from before its time was written down is as old as the certificate. */
export const revokedBy = (
  { atMs, reason }: Pick<Denial, 'atMs' | 'reason'>,
  record: Pick<CertificateRecord, 'issuedAtMs'> | null,
): { readonly atMs: number; readonly reason: DenialReason } => ({
  atMs: atMs === 0 && record !== null ? record.issuedAtMs : atMs,
  reason,
})
