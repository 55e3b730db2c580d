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
  | { readonly kind: 'waiting'; readonly tries: number; readonly nextAtMs: number; readonly error: string | null }
  | { readonly kind: 'done'; readonly how: 'revoked' | 'unknown there'; readonly atMs: number }
  | { readonly kind: 'given-up'; readonly atMs: number }

export const issuerRevocationKey = ({ issuer, serial }: Pick<IssuerRevocation, 'issuer' | 'serial'>): string =>
  `${issuer}/${serial}`

const digits = String(Number.MAX_SAFE_INTEGER).length

/** When it is to be sent, as a key that sorts; null: it is over. */
export const revocationDue = ({ serial, state }: Pick<IssuerRevocation, 'serial' | 'state'>): string | null =>
  state.kind === 'waiting' ? dueKey(state.nextAtMs, serial) : null

/** Up to this key all of an issuer are due. */
export const revocationsDueUpTo = (nowMs: number): string => dueKey(nowMs, '~')

const dueKey = (atMs: number, serial: string): string => `${String(atMs).padStart(digits, '0')}/${serial}`
