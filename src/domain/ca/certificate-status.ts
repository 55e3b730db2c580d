// Whether a certificate is still valid, as verifiers see it: by OCSP, in revocation lists, by `ca status`.
//
// The answer follows the same facts as the node listener: the deny-list, and the rows of the node, of the issuer and of banned
// keys. A missing denial, after a wrong clock or an edit of the database, never makes a certificate valid.

import {
  certificateDenialKey,
  epochDenialKey,
  issuerDenialKey,
  type CertificateRow,
  type Denial,
  type DenialReason,
  type KeyBan,
  slotsOf,
} from '#domain/core/certificate.ts'
import type { IssuerRow } from './issuer.ts'
import type { IssuerId, Node } from '#domain/core/node.ts'

export type CertificateStatus =
  | { readonly kind: 'good' }
  | { readonly kind: 'revoked'; readonly atMs: number; readonly reason: DenialReason }
  /** Not one of ours, or one that has expired: nothing is said of those. */
  | { readonly kind: 'unknown' }

export type StatusFacts = {
  /** Null: there is none in the store. */
  readonly row: CertificateRow | null
  /** Those `denialKeysFor` names, as far as they exist. */
  readonly denials: readonly Denial[]
  /** The node that the row names; null: it names none, or the registry has no such node. */
  readonly node: Node | null
  /** The ban on the public key of the certificate. */
  readonly ban: KeyBan | null
  /** The authority that is said to have issued it. */
  readonly issuer: Pick<IssuerRow, 'compromisedAtMs'> | null
  readonly nowMs: number
}

export type Revocation = { readonly atMs: number; readonly reason: DenialReason }

/** The deny-list entries that could be about this certificate. */
export const denialKeysFor = (
  issuer: IssuerId,
  serial: string,
  row: Pick<CertificateRow, 'subject'> | null,
): readonly string[] => [
  certificateDenialKey(issuer, serial),
  issuerDenialKey(issuer),
  ...(row?.subject.kind === 'node' ? [epochDenialKey(row.subject.node, row.subject.epoch)] : []),
]

/**
 * A denial counts with or without a row of the certificate: the holder of a withdrawn issuer's key can sign certificates that
 * have no row. The denial of an expired certificate may be deleted, so an expired one is never called good.
 */
export const certificateStatus = (facts: StatusFacts): CertificateStatus => {
  const { row, denials, node, nowMs } = facts
  const denied = denials
    .map((denial) => revokedBy(denial, row))
    .reduce<Revocation | null>((best, next) => (best === null || tellsMore(next, best) ? next : best), null)
  const revocation = denied ?? revokedByRows(facts)
  // A clock that was ahead when it was revoked must not make others wait for that moment.
  if (revocation !== null) return { kind: 'revoked', ...revocation, atMs: Math.min(revocation.atMs, nowMs) }
  if (row === null || row.notAfterMs <= nowMs) return { kind: 'unknown' }
  // The node listener does not know such a certificate either.
  return row.subject.kind === 'node' && node === null ? { kind: 'unknown' } : { kind: 'good' }
}

/** What the rows say without a denial: null where they say nothing against it. */
const revokedByRows = ({ row, node, ban, issuer }: StatusFacts): Revocation | null => {
  const { compromisedAtMs = null } = issuer ?? {}
  if (compromisedAtMs !== null) return { atMs: compromisedAtMs, reason: 'ca-compromise' }
  if (row === null) return null
  const byNode = node === null ? null : revokedByNode(row, node)
  return byNode ?? (ban === null ? null : { atMs: ban.atMs, reason: 'unspecified' })
}

/**
 * A certificate that was replaced by a renewal is not revoked. Where the row does not say since when a certificate is invalid, it
 * counts as never valid.
 */
export const revokedByNode = (
  { subject, issuedAtMs }: Pick<CertificateRow, 'subject' | 'issuedAtMs'>,
  node: Node,
): Revocation | null => {
  if (subject.kind !== 'node' || subject.node !== node.id) return null
  if (subject.epoch !== node.epoch) return { atMs: issuedAtMs, reason: 'superseded' }
  if (slotsOf(node) !== null) return null
  const { kind, sinceMs } = node.membership
  return { atMs: kind === 'revoked' || kind === 'quarantined' ? sinceMs : issuedAtMs, reason: 'unspecified' }
}

/** Whether any certificate of this node could be revoked by its row alone: if not, they need not be looked at. */
export const mayHaveRevoked = (node: Node): boolean => node.epoch > 1 || (node.epoch === 1 && slotsOf(node) === null)

/** Of two revocations of one certificate: the earlier one, and of the same moment the one with a reason. */
export const tellsMore = (one: Revocation, other: Revocation): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.reason !== 'unspecified' && other.reason === 'unspecified')

/** A denial from before its time was written down is as old as the certificate. */
export const revokedBy = (
  { atMs, reason }: Pick<Denial, 'atMs' | 'reason'>,
  row: Pick<CertificateRow, 'issuedAtMs'> | null,
): Revocation => ({
  atMs: atMs === 0 && row !== null ? row.issuedAtMs : atMs,
  reason,
})
