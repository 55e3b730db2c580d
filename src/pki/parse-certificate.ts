// Reads certificates, strictly. Reading checks no signature: `verify-chain.ts` does.

import type { KeyType } from '#domain/core/profile.ts'
import { serialHex, fingerprint } from './certificate.ts'
import { contextOf, DerReader, malformed, orMalformed, readDer, tags, type Malformed } from './der.ts'
import { readTime } from './der-time.ts'
import { readInteger, readOid, readSmallNumber, readTrueIfPresent, readWholeBits } from './der-values.ts'
import { readName } from './name.ts'
import { oids } from './oids.ts'
import { readExtensions, type ParsedExtensions } from './parse-extensions.ts'
import { readSignatureAlgorithm, suits, verifyAs, type SignatureAlgorithm } from './signature.ts'
import { readSpki } from './spki.ts'

export type ParsedCertificate = Readonly<ParsedExtensions> & {
  readonly kind: 'certificate'
  readonly der: Uint8Array
  /** What the signature is over. */
  readonly tbs: Uint8Array
  readonly signatureAlgorithm: SignatureAlgorithm
  readonly signature: Uint8Array
  /** Hex, lower case, no leading zeros. */
  readonly serial: string
  /** Names as DER: that is how they are compared. */
  readonly issuerName: Uint8Array
  readonly subjectName: Uint8Array
  /** For people: `CN=node-gpu-001, O=example, OU=nodes`. */
  readonly subject: string
  readonly issuer: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly spki: Uint8Array
  readonly keyType: KeyType
  /** SHA-256 of the whole, hex. */
  readonly sha256: string
}

const largestCertificate = 16_384

export const parseCertificate = (der: Uint8Array): ParsedCertificate | Malformed => {
  if (der.length > largestCertificate) return { kind: 'malformed', why: `more than ${largestCertificate} bytes` }
  return orMalformed(() => readDer(der, (top) => readCertificate(der, top)))
}

const readCertificate = (der: Uint8Array, top: DerReader): ParsedCertificate => {
  const certificate = top.inside(tags.sequence)
  const tbs = certificate.whole(tags.sequence)
  const signatureAlgorithm = readSignatureAlgorithm(certificate)
  const signature = readWholeBits(certificate)
  certificate.finish()

  const body = certificate.over(tbs).inside(tags.sequence)
  readVersion3(body)
  const serial = readSerial(body)
  if (readSignatureAlgorithm(body) !== signatureAlgorithm) malformed('two different signature algorithms')
  const issuerName = body.whole(tags.sequence)
  const issuer = readName(body.over(issuerName))
  const validity = body.inside(tags.sequence)
  const notBeforeMs = readTime(validity)
  const notAfterMs = readTime(validity)
  validity.finish()
  const subjectName = body.whole(tags.sequence)
  const subject = readName(body.over(subjectName))
  const spki = body.whole(tags.sequence)
  const extensions = body.inside(contextOf(3))
  body.finish()
  const parsed = readExtensions(extensions)
  extensions.finish()
  return {
    kind: 'certificate',
    der,
    tbs,
    signatureAlgorithm,
    signature,
    serial,
    issuerName,
    subjectName,
    subject,
    issuer,
    notBeforeMs,
    notAfterMs,
    spki,
    keyType: readSpki(spki).type,
    sha256: fingerprint(der),
    ...parsed,
  }
}

const readVersion3 = (body: DerReader): void => {
  if (body.next !== contextOf(0)) malformed('not a certificate of version 3')
  const version = body.inside(contextOf(0))
  if (readSmallNumber(version) !== 2) malformed('not a certificate of version 3')
  version.finish()
}

const readSerial = (body: DerReader): string => {
  const bytes = readInteger(body)
  if ((bytes[0] ?? 0x80) >= 0x80 || bytes.length > 20) malformed('a serial number that is negative or too long')
  const serial = serialHex(bytes)
  return serial === '0' ? malformed('a serial number of zero') : serial
}

/** Whether the key of `issuer` signed `certificate`. Nothing else is looked at. */
export const isSignedBy = (certificate: ParsedCertificate, issuer: ParsedCertificate): boolean =>
  suits(issuer.keyType, certificate.signatureAlgorithm) &&
  verifyAs(certificate.signatureAlgorithm, issuer.spki, certificate.tbs, certificate.signature)

/**
 * How a presented certificate is looked up, on every authenticated connection: reads no more than it must. What it
 * finds proves nothing; the certificate in the store has to equal the one presented.
 */
export const issuerAndSerial = (der: Uint8Array): { issuer: string; serial: string } | null => {
  if (der.length > largestCertificate) return null
  const found = orMalformed(() => {
    const body = new DerReader(der, 0, der.length, 0).inside(tags.sequence).inside(tags.sequence)
    readVersion3(body)
    const serial = readSerial(body)
    while (body.next !== contextOf(3)) body.whole(body.next)
    const issuer = readIssuer(body.inside(contextOf(3)).inside(tags.sequence))
    return issuer === null ? null : { issuer, serial }
  })
  return found === null || 'kind' in found ? null : found
}

const readIssuer = (extensions: DerReader): string | null => {
  while (!extensions.atEnd) {
    const extension = extensions.inside(tags.sequence)
    if (readOid(extension) !== oids.authorityKeyId) continue
    readTrueIfPresent(extension)
    const value = extension.over(extension.content(tags.octetString)).inside(tags.sequence)
    return Buffer.from(value.content(0x80)).toString('hex')
  }
  return null
}
