// The certificates that an operator gives for an outside issuer, read strictly: what its leaves hang under, and what its server does.

import type { GivenAuthority, KnownAuthority } from '#domain/issuers/change-issuer.ts'
import { refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isSignedBy, parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import { keyId } from '#pki/spki.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** `rsaEncryption` and the RSA signatures of PKCS#1 and PSS. */
const rsaWords = /1\.2\.840\.113549\.1\.1\./

/** Above its leaves: a root, and issuing CAs below it. */
export const readAuthorities = (pems: readonly string[]): readonly GivenAuthority[] | Refusal => {
  const no = (why: string): Refusal => refuseField('REQUEST_INVALID', 'roots', why)
  const parsed: ParsedCertificate[] = []
  for (const der of dersIn(pems) ?? []) {
    const certificate = parseCertificate(der)
    if (certificate.kind === 'malformed')
      return no(
        rsaWords.test(certificate.why)
          ? 'a CA has an RSA key, or an RSA key has signed it: neither planes nor agents read those; use one with P-256, P-384 or Ed25519'
          : `a certificate cannot be read: ${certificate.why}`,
      )
    if (!certificate.ca) return no(`${certificate.subject} is not a CA`)
    const same = parsed.find((one) => sameBytes(one.spki, certificate.spki))
    if (same === undefined) parsed.push(certificate)
    // An authority is its key, and has one certificate on record.
    else if (!sameBytes(same.der, der))
      return no(`two certificates have the key of ${certificate.subject}: leave one out, and not a self-signed one`)
  }
  if (parsed.length === 0) return no('roots holds something that is no certificate in PEM')
  const authorities: GivenAuthority[] = []
  for (const certificate of parsed) {
    const above = isSignedBy(certificate, certificate)
      ? certificate
      : parsed.find((one) => sameBytes(one.subjectName, certificate.issuerName) && isSignedBy(certificate, one))
    if (above === undefined) return no(`what has signed ${certificate.subject} is not among roots`)
    authorities.push({
      id: keyId(certificate.spki),
      parent: keyId(above.spki),
      der: Buffer.from(certificate.der).toString('base64'),
      notBeforeMs: certificate.notBeforeMs,
      notAfterMs: certificate.notAfterMs,
      subjectKeyId: certificate.subjectKeyId,
    })
  }
  const astray = authorities.find(({ id }) => !leadsToRoot(id, authorities))
  return astray === undefined ? authorities : no(`${astray.id} does not lead to a self-signed certificate among roots`)
}

/** Authorities that have signed each other lead nowhere. */
const leadsToRoot = (from: string, authorities: readonly GivenAuthority[]): boolean => {
  let id = from
  for (const _ of authorities) {
    const parent = authorities.find((one) => one.id === id)?.parent ?? id
    if (parent === id) return true
    id = parent
  }
  return false
}

/** Node verifies with them, so they may have keys that Muster does not read. */
export const unfitServerRoots = (pems: readonly string[]): Refusal | null =>
  dersIn(pems) === null
    ? refuseField('REQUEST_INVALID', 'server_roots', 'it holds something that is no certificate in PEM')
    : null

const dersIn = (pems: readonly string[]): readonly Uint8Array[] | null => {
  const found = pems.map((pem) => allFromPem('CERTIFICATE', pem))
  return found.some((one) => one === null || one.length === 0) ? null : found.flatMap((one) => one ?? [])
}

/** Every authority on record, with the name that leaves know it by. */
export const knownAuthorities = async (store: Pick<Store, 'issuers'>): Promise<readonly KnownAuthority[]> =>
  (await store.issuers()).map((row) => {
    const certificate = parseCertificate(Buffer.from(row.value.der, 'base64'))
    return { row, subjectKeyId: certificate.kind === 'certificate' ? certificate.subjectKeyId : null }
  })
