// The outbox of revocations for outside issuers: one row for each certificate that is to be revoked there. Here it is denied already, and
// nothing waits for the issuer.

import type { CertificateRow, Denial, RevocationReason } from '#domain/core/certificate.ts'
import { decided, entry, readOf, type Attribution, type Decided, type Row, type Write } from '#domain/core/change.ts'

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

const outbox: Attribution = { actor: 'system:issuers', source: null, correlation: null }

/** A certificate that a denial has ended, with the issuer that its order was placed at. */
export type DeniedOutside = { readonly certificate: CertificateRow; readonly issuer: string }

/** Those that have no row yet; null: all have one. `receipt`: of the withdrawal that the denial belongs to. */
export const queueRevocations = (
  denial: Pick<Denial, 'reason' | 'kind'>,
  denied: readonly DeniedOutside[],
  receipt: string | null,
  nowMs: number,
): Decided | null => {
  const rows = denied
    .filter(({ certificate }) => certificate.notAfterMs > nowMs)
    .map(({ certificate, issuer }): IssuerRevocation => ({
      ...{ issuer, serial: certificate.serial, order: certificate.order, receipt },
      reason: denial.reason === 'ca-compromise' ? 'unspecified' : denial.reason,
      why: denial.reason === 'superseded' ? 'superseded' : 'revoked',
      atMs: nowMs,
      untilMs: certificate.notAfterMs,
      state: { kind: 'waiting' },
    }))
  // A node that has moved from one issuer to another has certificates of both.
  const [first, ...others] = [...Map.groupBy(rows, (row) => row.issuer).entries()].map(([issuer, queued]) => {
    const body = { issuer, serials: queued.map(({ serial }) => serial), why: queued[0]?.why ?? null }
    return entry(outbox, nowMs, 'issuer.revocation_queued', {}, body)
  })
  if (first === undefined) return null
  return decided({
    reads: rows.map((row) => readOf('issuer-revocation', issuerRevocationKey(row), null)),
    writes: rows.map((value): Write => ({ put: 'issuer-revocation', value })),
    entries: [first, ...others],
  })
}

export const revocationDone = (row: Row<IssuerRevocation>, how: 'revoked' | 'unknown there', nowMs: number): Decided =>
  over(row, { kind: 'done', how, atMs: nowMs }, 'issuer.revoked', nowMs)

/** The certificate has ended. */
export const revocationGivenUp = (row: Row<IssuerRevocation>, nowMs: number): Decided =>
  over(row, { kind: 'given-up', atMs: nowMs }, 'issuer.revocation_given_up', nowMs)

/** The issuer has answered about another certificate. That is no answer: the row stays as it is. */
export const revocationMisanswered = (row: Row<IssuerRevocation>, why: string, nowMs: number): Decided => {
  const { issuer, serial } = row.value
  const body = { security_event: true, outside_issuer: issuer, fields: ['serial'], violations: [why], serial }
  return decided({
    reads: [readOf('issuer-revocation', issuerRevocationKey(row.value), row)],
    writes: [],
    entries: [entry(outbox, nowMs, 'issuer.violation', {}, body)],
  })
}

const over = (
  row: Row<IssuerRevocation>,
  state: RevocationState,
  type: 'issuer.revoked' | 'issuer.revocation_given_up',
  nowMs: number,
): Decided => {
  const { issuer, serial, why } = row.value
  const how = state.kind === 'done' ? { how: state.how } : {}
  return decided({
    reads: [readOf('issuer-revocation', issuerRevocationKey(row.value), row)],
    writes: [{ put: 'issuer-revocation', value: { ...row.value, state } }],
    entries: [entry(outbox, nowMs, type, {}, { issuer, serial, why, ...how })],
  })
}
