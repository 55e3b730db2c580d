// The outbox of revocations for outside issuers: one row for each certificate that is to be revoked there. Here it is denied already, in
// the commit that wrote the row, and nothing waits for the issuer.

import type { RevocationReason } from '#domain/core/certificate.ts'

export type IssuerRevocation = {
  /** The id of the outside issuer. */
  readonly issuer: string
  readonly serial: string
  readonly reason: RevocationReason
  readonly why: 'revoked' | 'orphan' | 'violation' | 'superseded'
  /** The order that the certificate was, or may have been, signed for; null: not known. */
  readonly order: string | null
  /** Of the revocation that it is a part of; null: none. */
  readonly receipt: string | null
  readonly atMs: number
  /** When the certificate has ended at the latest. It is given up then. */
  readonly untilMs: number
  readonly state: RevocationState
}

export type RevocationState =
  /** An attempt is no change of it: each would be an entry of the journal. The leader knows in memory when the next one is. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'done'; readonly how: 'revoked' | 'unknown there'; readonly atMs: number }
  | { readonly kind: 'given-up'; readonly atMs: number }

export const issuerRevocationKey = ({ issuer, serial }: Pick<IssuerRevocation, 'issuer' | 'serial'>): string =>
  `${issuer}/${serial}`

const digits = String(Number.MAX_SAFE_INTEGER).length

/** The oldest first, as a key that sorts; null: it is over. */
export const revocationPlace = ({
  serial,
  state,
  atMs,
}: Pick<IssuerRevocation, 'serial' | 'state' | 'atMs'>): string | null =>
  state.kind === 'waiting' ? `${String(atMs).padStart(digits, '0')}/${serial}` : null
