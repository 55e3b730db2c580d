// A certificate authority that can sign: its row, its key, and the leaves it signs.

import type { IssuerRecord } from '#domain/ca/issuer.ts'
import { keyId, loadPrivateKey, type PrivateKey, spkiHash } from '#pki/keys.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { sameBytes } from '#platform/bytes.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import type { SigningOrder, IssuedCertificate } from '#domain/core/certificate.ts'
import { leafSpec, type StatusPlaces } from '#pki/authority-certificates.ts'
import { buildCertificate, serialHex, fingerprint } from '#pki/certificate.ts'
import type { Random } from '#platform/random.ts'
import type { IssuerId } from '#domain/core/node.ts'

/** The number of random bytes of a serial number. */
export const serialBytes = 16

export type CaSigner = {
  readonly record: IssuerRecord
  readonly certificate: ParsedCertificate
  readonly key: PrivateKey
}

export const certificateOf = (record: IssuerRecord): ParsedCertificate => {
  const parsed = parseCertificate(Buffer.from(record.der, 'base64'))
  if (parsed.kind === 'malformed')
    throw new Error(`the certificate of issuer ${record.id} on record is not one: ${parsed.why}`)
  return parsed
}

/** How an issuer is named in every certificate it signs. */
const issuerIdOf = (certificate: ParsedCertificate): string => certificate.subjectKeyId ?? keyId(certificate.spki)

export const recordOf = (
  certificate: ParsedCertificate,
  as: Pick<IssuerRecord, 'role' | 'custody' | 'parent'>,
): IssuerRecord => ({
  id: issuerIdOf(certificate),
  role: as.role,
  der: Buffer.from(certificate.der).toString('base64'),
  parent: as.parent,
  custody: as.custody,
  notBeforeMs: certificate.notBeforeMs,
  notAfterMs: certificate.notAfterMs,
  retiredAtMs: null,
  compromisedAtMs: null,
})

/** Null: its key is not here. */
export const signerFrom = (custody: KeyCustody, record: IssuerRecord): CaSigner | null => {
  const pem = custody.find({ role: record.role, id: record.id })
  return pem === null ? null : signerWith(record, pem)
}

/** Throws where it is another's key. */
export const signerWith = (record: IssuerRecord, pem: string): CaSigner => {
  const certificate = certificateOf(record)
  const key = loadPrivateKey(pem)
  if (!sameBytes(key.spki, certificate.spki)) throw new Error(`the key kept for issuer ${record.id} is not its key`)
  return { record, certificate, key }
}

/** Durable when it resolves; a key in memory custody is never written, and one offline is not ours to keep. */
export const keepKey = async (custody: KeyCustody, { record, key }: CaSigner): Promise<void> => {
  if (record.custody === 'file') await custody.keep({ role: record.role, id: record.id }, key.pkcs8Pem())
}

/** The hot path: one certificate as ordered, signed and checked. */
export const signLeaf = (
  signer: CaSigner,
  order: SigningOrder,
  random: Random,
  statusUrl: string | null = null,
): IssuedCertificate => {
  const { certificate: ca } = signer
  if (order.issuedAtMs >= ca.notAfterMs) throw new Error(`issuing CA ${signer.record.id} has expired`)
  // A clock set back by more than that would make certificates from before their own issuer.
  if (order.issuedAtMs < ca.notBeforeMs)
    throw new Error(`the clock is behind the start of issuing CA ${signer.record.id}`)

  const serial = random.bytes(serialBytes)
  const spec = leafSpec(order, ca, serial, statusPlacesOf(statusUrl, signer.record))
  const der = Buffer.from(buildCertificate(spec, signer.key))
  checkAgainstOrder(der, order)
  return {
    issuer: signer.record.id,
    serial: serialHex(serial),
    spki: spkiHash(order.publicKey),
    sha256: fingerprint(der),
    issuedAtMs: order.issuedAtMs,
    notAfterMs: spec.notAfterMs,
    der: der.toString('base64'),
    order: order.id,
  }
}

/** Cheap on purpose: the key and every name have to be in there, byte for byte. */
const checkAgainstOrder = (der: Buffer, order: SigningOrder): void => {
  const { cn, o, ou } = order.subject
  const there =
    der.includes(order.publicKey) &&
    [cn, o, ou, ...order.uriSans, ...order.dnsSans].every((name) => der.includes(name, 0, 'utf8'))
  if (!there) throw new Error(`the certificate for order ${order.id} is not what was ordered`)
}

// Where others ask whether a certificate still holds: the paths of the status listener, under the URL it is found at.

export const ocspPath = '/ocsp'
const fullListPath = (issuer: IssuerId): string => `/crl/${issuer}.crl`
export const deltaListPath = (issuer: IssuerId): string => `/crl/${issuer}-delta.crl`

/** An issuer in memory has no lists: who would sign them when its plane is gone? */
const statusPlacesOf = (url: string | null, { id, custody }: Pick<IssuerRecord, 'id' | 'custody'>): StatusPlaces => ({
  ocspUrl: url === null ? null : `${url}${ocspPath}`,
  crlUrl: url === null || custody !== 'file' ? null : `${url}${fullListPath(id)}`,
})
