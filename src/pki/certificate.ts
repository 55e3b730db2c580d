// Builds and signs certificates. What goes into one is decided elsewhere.

import { contextOf } from './der.ts'
import { time } from './der-time.ts'
import { bits, constructed, encode, raw, sequence, smallNumber, unsigned } from './der-writer.ts'
import { encodeExtensions, type Extensions } from './extensions.ts'
import { encodeName, type Name } from './name.ts'
import { algorithmIdentifier, algorithmOf } from './signature.ts'
import { type MadeWith, type Signer, signedWith } from './signer.ts'
import { keyId } from './spki.ts'
import { hash } from 'node:crypto'

export type { Name }

export type CertificateSpec = {
  /** Big-endian; 128 random bits. */
  readonly serial: Uint8Array
  readonly subject: Name
  /** The issuer's subject: the DER bytes of the issuer's certificate, or a name. */
  readonly issuer: Uint8Array | Name
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array
  readonly extensions: Extensions
}

const version3 = constructed(contextOf(0), [smallNumber(2)])

/** DER. Throws on a specification that makes no valid certificate: those are bugs, not requests. */
export const buildCertificate = <S extends Signer>(spec: CertificateSpec, signer: S): MadeWith<S, Uint8Array> => {
  const serial = unsigned(spec.serial)
  if (serial.length > 20 || spec.serial.every((byte) => byte === 0)) throw new Error('not a serial number')
  if (spec.notAfterMs < spec.notBeforeMs) throw new Error('a certificate that ends before it begins')
  const algorithm = raw(algorithmIdentifier[algorithmOf[signer.type]])
  const { cn, o, ou } = spec.subject
  const tbs = encode(
    sequence(
      version3,
      serial,
      algorithm,
      raw(spec.issuer instanceof Uint8Array ? spec.issuer : encodeName(spec.issuer)),
      sequence(time(spec.notBeforeMs), time(spec.notAfterMs)),
      raw(encodeName(spec.subject)),
      raw(spec.spki),
      encodeExtensions(spec.extensions, keyId(spec.spki), cn === null && o === null && ou === null),
    ),
  )
  return signedWith(signer, tbs, (signature) => encode(sequence(raw(tbs), algorithm, bits(signature))))
}

/** How a serial number is written everywhere: hex, lower case, no leading zeros. */
export const serialHex = (serial: Uint8Array): string =>
  Buffer.from(serial.buffer, serial.byteOffset, serial.byteLength)
    .toString('hex')
    .replace(/^0+(?=.)/, '')

/** SHA-256 of a certificate, lower-case hex: how people and join strings name a root. */
export const fingerprint = (der: Uint8Array): string => hash('sha256', der, 'hex')
