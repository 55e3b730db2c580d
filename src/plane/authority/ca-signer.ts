// A certificate authority that can sign: its row, its key, and the leaves it signs.

import { isKept, type IssuerRow } from '#domain/ca/issuer.ts'
import { keyId, spkiHash } from '#pki/keys.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { signerOfKept, type KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import type { NewKey } from './new-key.ts'
import type { SigningOrder, IssuedCertificate } from '#domain/core/certificate.ts'
import { leafSpec, type StatusPlaces } from '#pki/authority-certificates.ts'
import { buildCertificate, serialHex, fingerprint } from '#pki/certificate.ts'
import { goOn, type MadeWith, type Signer } from '#pki/signer.ts'
import type { Random } from '#platform/random.ts'
import type { IssuerId } from '#domain/core/node.ts'

const serialBytes = 16

/**
 * The serial number of a CA or a responder: random. Its first digit is not 0: OpenSSL prints a serial number as whole bytes, we print it without
 * leading zeros, and both are to be the same.
 */
export const newSerial = (random: Pick<Random, 'bytes'>): Uint8Array => {
  const [first = 0, ...rest] = random.bytes(serialBytes)
  return Uint8Array.of(first | 0x10, ...rest)
}

/**
 * The serial number of a leaf: milliseconds of its issue (44 bits, which last until the year 2527) after a digit that is not 0, then 80 random
 * bits. Leaves that are issued together are neighbours in the indexes of the store, so that a group of commits writes a page for all of them and
 * not one for each (docs/decisions/store/sorted-serials.md).
 */
export const leafSerial = (issuedAtMs: number, random: Pick<Random, 'bytes'>): Uint8Array => {
  const serial = random.bytes(serialBytes)
  serial.writeUInt16BE(0x1000 | (Math.floor(issuedAtMs / 2 ** 32) & 0xfff), 0)
  serial.writeUInt32BE(issuedAtMs % 2 ** 32, 2)
  return serial
}

/** With a key that may be elsewhere. */
export type CaSigner<S extends Signer = Signer> = {
  readonly row: IssuerRow
  readonly certificate: ParsedCertificate
  readonly key: S
}

/** Whose key is new here. */
export type MadeCa<S extends Signer = Signer> = CaSigner<S> & Pick<NewKey, 'kept'>

export const certificateOf = (row: IssuerRow): ParsedCertificate => {
  const parsed = parseCertificate(Buffer.from(row.der, 'base64'))
  if (parsed.kind === 'malformed')
    throw new Error(`the certificate of issuer ${row.id} in the store is not one: ${parsed.why}`)
  return parsed
}

/** How an issuer is named in every certificate it signs. */
const issuerIdOf = (certificate: ParsedCertificate): string => certificate.subjectKeyId ?? keyId(certificate.spki)

export const issuerRow = (
  certificate: ParsedCertificate,
  as: Pick<IssuerRow, 'role' | 'custody' | 'parent'>,
): IssuerRow => ({
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

/** Null: neither its key nor a reference to it is here. */
export const signerFrom = (custody: KeyCustody, row: IssuerRow): CaSigner | null => {
  const kept = custody.find({ role: row.role, id: row.id })
  return kept === null ? null : signerWith(row, kept, custody.elsewhere)
}

/** Throws where a key is another's. What is signed by one in a token is verified with the key of the row. */
export const signerWith = (row: IssuerRow, kept: string, elsewhere: KeysElsewhere): CaSigner => {
  const certificate = certificateOf(row)
  const key = signerOfKept(elsewhere, kept, certificate.spki)
  if (key === null) throw new Error(`the key kept for issuer ${row.id} is not its key`)
  return { row, certificate, key }
}

/** Durable when it resolves; a key in memory custody is never written, and one offline is not ours to keep. */
export const keepKey = async (custody: KeyCustody, { row, kept }: Pick<MadeCa, 'row' | 'kept'>): Promise<void> => {
  if (isKept(row)) await custody.keep({ role: row.role, id: row.id }, kept)
}

/** The hot path: one certificate as ordered, signed and checked. */
export const signLeaf = <S extends Signer>(
  signer: CaSigner<S>,
  order: SigningOrder,
  random: Random,
  statusUrl: string | null = null,
): MadeWith<S, IssuedCertificate> => {
  const { certificate: ca } = signer
  if (order.issuedAtMs >= ca.notAfterMs) throw new Error(`issuing CA ${signer.row.id} has expired`)
  // A clock set back by more than that would make certificates from before their own issuer.
  if (order.issuedAtMs < ca.notBeforeMs) throw new Error(`the clock is behind the start of issuing CA ${signer.row.id}`)

  const serial = leafSerial(order.issuedAtMs, random)
  const spec = leafSpec(order, ca, serial, statusPlacesOf(statusUrl, signer.row))
  const issued = (certificate: Uint8Array): IssuedCertificate => {
    const der = Buffer.from(certificate)
    checkAgainstOrder(der, order)
    return {
      issuer: signer.row.id,
      serial: serialHex(serial),
      spki: spkiHash(order.publicKey),
      sha256: fingerprint(der),
      issuedAtMs: order.issuedAtMs,
      notAfterMs: spec.notAfterMs,
      der: der.toString('base64'),
      order: order.id,
    }
  }
  return goOn<Uint8Array, IssuedCertificate>(buildCertificate<Signer>(spec, signer.key), issued) as MadeWith<
    S,
    IssuedCertificate
  >
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
const statusPlacesOf = (url: string | null, row: Pick<IssuerRow, 'id' | 'custody'>): StatusPlaces => ({
  ocspUrl: url === null ? null : `${url}${ocspPath}`,
  crlUrl: url === null || !isKept(row) ? null : `${url}${fullListPath(row.id)}`,
})
