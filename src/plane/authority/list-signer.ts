// The revocation lists of an issuing CA are signed by its own key, also once it has retired: its certificates name its list to
// verifiers until the last of them has expired. From its retirement on the key is kept under a role that no authority has. Code
// that signs certificates looks for a key by the role of an authority, and does not find it.

import { certificateKey, type CertificateRow } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { isKept, type IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { isListed } from '#domain/ca/revocation-list.ts'
import { buildCrl, type CrlSpec } from '#pki/crl.ts'
import { pages, type PageReading } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { signerWith } from './ca-signer.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'

/** A key that signs lists, and is not given out for anything else. */
export type ListSigner = {
  readonly issuer: IssuerId
  /** DER. */
  readonly sign: (list: Omit<CrlSpec, 'issuer' | 'authorityKeyId'>) => Uint8Array | Promise<Uint8Array>
}

/** One in memory has no lists; of a withdrawn one, every list would be signed by the key that is not to be trusted. */
export const signsLists = (row: IssuerRow): boolean =>
  row.role === 'issuing' && isKept(row) && row.compromisedAtMs === null

const retiredName = (id: IssuerId): KeyName => ({ role: 'retired', id })

/** Where its key is. For a moment after its retirement, or until a start after a crash, it still is where it was. */
const namesOf = ({ id, retiredAtMs }: IssuerRow): readonly KeyName[] =>
  retiredAtMs === null ? [{ role: 'issuing', id }] : [retiredName(id), { role: 'issuing', id }]

export const hasListKey = (custody: KeyCustody, row: IssuerRow): boolean =>
  namesOf(row).some((name) => custody.has(name))

/** Null: its key is not here, or is not to sign a list. */
export const findListSigner = (custody: KeyCustody, row: IssuerRow): ListSigner | null => {
  const name = signsLists(row) ? namesOf(row).find((one) => custody.has(one)) : undefined
  const kept = name === undefined ? null : custody.find(name)
  if (kept === null) return null
  const { certificate, key } = signerWith(row, kept, custody.elsewhere)
  return {
    issuer: row.id,
    sign: (list) => buildCrl({ ...list, issuer: certificate.subjectName, authorityKeyId: row.id }, key),
  }
}

/** What a retired issuer signed certificates with signs its lists from now on. Durable when it resolves; may be repeated. */
export const keepForLists = async (custody: KeyCustody, id: IssuerId): Promise<void> => {
  const pem = custody.find({ role: 'issuing', id })
  if (pem !== null) await custody.keep(retiredName(id), pem)
}

/** A retired key is removed once no verifier needs its list any more: all that it has signed has expired. */
export const dropEndedListKeys = async ({
  custody,
  store,
  nowMs,
}: {
  readonly custody: KeyCustody
  readonly store: Pick<Store, 'get' | 'list'>
  readonly nowMs: number
}): Promise<void> => {
  for (const name of custody.names()) {
    if (name.role !== 'retired') continue
    const issuer = (await store.get('issuer', name.id))?.value
    if (issuer === undefined) continue
    const isNeeded = signsLists(issuer) && issuer.notAfterMs > nowMs && (await isAskedAbout(store, name.id, nowMs))
    if (!isNeeded) await custody.drop(name)
  }
}

const page = 500

/** Whether it has signed anything that has to be on a list if it is denied. The first that has ends the search. */
const isAskedAbout = async (store: Pick<Store, 'list'>, issuer: IssuerId, nowMs: number): Promise<boolean> => {
  const reading: PageReading<Row<CertificateRow>, string> = {
    limit: page,
    // Keys begin with the issuer: the first row of another ends the search.
    read: async (after, limit) =>
      (await store.list('certificate', { after: after ?? `${issuer}/`, limit })).filter(
        ({ value }) => value.issuer === issuer,
      ),
    placeOf: ({ value }) => certificateKey(value.issuer, value.serial),
  }
  for await (const rows of pages(reading)) if (rows.some(({ value }) => isListed(value, nowMs))) return true
  return false
}
