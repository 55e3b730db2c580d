// What an outside issuer has returned becomes a certificate of ours, or a violation: read in full, compared with the order, and with what is
// on record of that issuer.

import { certificateKey, type IssuedCertificate, type SigningOrder } from '#domain/core/certificate.ts'
import { boundedText, entry, readOf, type Attribution, type ChangePart } from '#domain/core/change.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { orderEntry, ordersActor } from '#domain/issuers/order-changes.ts'
import type { Order } from '#domain/issuers/order.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import {
  judgeReturned,
  returnedSerial,
  type IssuerClock,
  type ReturnedVerdict,
  type Violation,
} from '#pki/returned-certificate.ts'
import { keyId } from '#pki/spki.ts'
import type { Core } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { OutsideBook } from './outside-book.ts'

export type JudgeFacts = {
  readonly issuer: OutsideIssuer
  readonly wanted: SigningOrder
  readonly order: Order
  /** DER, the leaf first. */
  readonly chain: readonly Uint8Array[]
  readonly leastLifetimeMs: number
  readonly clock: IssuerClock
}

export type JudgedAnswer =
  | {
      readonly kind: 'good'
      readonly certificate: IssuedCertificate
      /** Rows of issuing CAs that sign for the first time. Read again each time: another order may have recorded them meanwhile. */
      authorities(nowMs: number): Promise<Required<ChangePart>>
      readonly shortByMs: number
    }
  | {
      readonly kind: 'violates'
      readonly fields: readonly string[]
      /** To be revoked there; null: it cannot be read, or is that of another certificate. */
      readonly serial: string | null
      readonly why: string
      entry(by: Attribution, nowMs: number): EntryDraft
    }

export type JudgeParts = { readonly book: OutsideBook; readonly own: Pick<Issuer, 'withdrawnIssuers'> }

export const judgeAnswer = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  { book, own }: JudgeParts,
  facts: JudgeFacts,
): Promise<JudgedAnswer> => {
  const { issuer, wanted, order, chain } = facts
  const roots = book.rootsOf(issuer)
  const returned = returnedSerial({ chain, roots })
  const onRecord =
    returned === null ? null : await store.get('certificate', certificateKey(returned.issuer, returned.serial))
  const isOnRecord = onRecord !== null
  const verdict = judgeReturned({
    order: wanted,
    ...{ chain, roots, isOnRecord, leastLifetimeMs: facts.leastLifetimeMs, clock: facts.clock },
    withdrawn: [...own.withdrawnIssuers(), ...book.withdrawn()],
    serial: order.attempts.at(-1)?.serial ?? null,
    answeredAtMs: clock.nowMs(),
  })
  if (verdict.kind === 'violates') return violated(facts, verdict.violations, isOnRecord ? null : verdict.serial)
  const authorities = await authoritiesOf(store, book, issuer, verdict)
  if ('why' in authorities) return violated(facts, [authorities], verdict.leaf.serial)
  const { leaf, shortByMs } = verdict
  const [signedBy] = verdict.above
  if (signedBy === undefined) throw new Error('a leaf was found good without an authority above it')
  return {
    kind: 'good',
    shortByMs,
    certificate: {
      issuer: keyId(signedBy.spki),
      serial: leaf.serial,
      spki: order.spki,
      sha256: leaf.sha256,
      issuedAtMs: order.issuedAtMs,
      notAfterMs: leaf.notAfterMs,
      der: Buffer.from(leaf.der).toString('base64'),
      order: order.id,
    },
    authorities: async (nowMs) => recordedPart(await notOnRecord(store, authorities.rows), facts, nowMs),
  }
}

const violated = (
  { issuer, order }: JudgeFacts,
  violations: readonly Violation[],
  serial: string | null,
): JudgedAnswer => {
  const fields = [...new Set(violations.map(({ field }) => field))]
  const words = violations.map(({ field, why }) => boundedText(`${field}: ${why}`))
  return {
    ...{ kind: 'violates', fields, serial, why: boundedText(`it returned something else: ${words.join('; ')}`) },
    entry: (by, nowMs) =>
      orderEntry(order, 'issuer.violation', by, nowMs, {
        ...{ security_event: true, issuer_name: issuer.name, fields, violations: words, returned_serial: serial },
      }),
  }
}

/** Each is on record for good, and in the memory of every replica: an issuer that makes one for each leaf is not well. */
const mostAuthorities = 64

/** Those above the leaf that are not on record, from the root downwards. */
const authoritiesOf = async (
  store: Core['store'],
  book: OutsideBook,
  issuer: OutsideIssuer,
  { above }: Extract<ReturnedVerdict, { kind: 'as-ordered' }>,
): Promise<{ readonly rows: readonly IssuerRow[] } | Violation> => {
  const rows: IssuerRow[] = []
  for (const [place, certificate] of above.entries()) {
    const id = keyId(certificate.spki)
    const known = await store.get('issuer', id)
    if (known !== null) {
      // Also where it hangs under one of theirs: what it signs would be taken for signed here.
      if (!isOutside(known.value))
        return { field: 'chain', why: `${certificate.subject} is an authority of this domain` }
      continue
    }
    const { subjectKeyId } = certificate
    const twin = subjectKeyId === null ? null : book.find(book.idOf(subjectKeyId))
    const isOurs = subjectKeyId !== null && (await store.get('issuer', subjectKeyId)) !== null
    if (twin !== null || isOurs)
      return { field: 'chain', why: `${certificate.subject} has the key identifier of an authority with another key` }
    rows.push(authorityRow(certificate, above[place + 1]))
  }
  if (rows.length > 0 && book.authoritiesOf(issuer).length + rows.length > mostAuthorities)
    return {
      field: 'chain',
      why: `it is of an authority that is new, and ${mostAuthorities} of this issuer are on record`,
    }
  return { rows: rows.toReversed() }
}

const isOutside = ({ role }: IssuerRow): boolean => role === 'outside-root' || role === 'outside-issuing'

/** One that has become an authority of this domain stays among them, so that the commit fails. */
const notOnRecord = async (store: Core['store'], rows: readonly IssuerRow[]): Promise<readonly IssuerRow[]> => {
  const left: IssuerRow[] = []
  for (const row of rows) {
    const known = await store.get('issuer', row.id)
    if (known === null || !isOutside(known.value)) left.push(row)
  }
  return left
}

const authorityRow = (certificate: ParsedCertificate, above: ParsedCertificate | undefined): IssuerRow => ({
  id: keyId(certificate.spki),
  role: 'outside-issuing',
  der: Buffer.from(certificate.der).toString('base64'),
  parent: keyId((above ?? certificate).spki),
  custody: 'offline',
  notBeforeMs: certificate.notBeforeMs,
  notAfterMs: certificate.notAfterMs,
  retiredAtMs: null,
  compromisedAtMs: null,
})

const recordedPart = (
  rows: readonly IssuerRow[],
  { issuer, order }: JudgeFacts,
  nowMs: number,
): Required<ChangePart> => ({
  reads: rows.map(({ id }) => readOf('issuer', id, null)),
  writes: rows.map((value) => ({ put: 'issuer', value }) as const),
  entries: rows.map(({ id, parent }) =>
    entry(
      ordersActor,
      nowMs,
      'issuer.authority_recorded',
      { issuer: id },
      { outside_issuer: issuer.id, issuer_name: issuer.name, parent, order: order.id },
    ),
  ),
})
