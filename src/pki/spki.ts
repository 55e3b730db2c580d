// The public key of a certificate or request (SubjectPublicKeyInfo): which kind it is, and its names.

import { hash } from 'node:crypto'
import type { KeyType } from '#domain/core/profile.ts'
import { isEd25519Key, isPointOf, isUncompressed, p256, p384 } from './curve.ts'
import { type DerReader, malformed, orMalformed, readDer, tags } from './der.ts'
import { readOid, readWholeBits } from './der-values.ts'
import { bits, encode, oid, sequence } from './der-writer.ts'
import { oids } from './oids.ts'

export type PublicKeyInfo = { readonly type: KeyType; readonly bits: Uint8Array }

/** Exact algorithm identifiers with the right parameters, and a valid point: no other encoding of the same key passes. */
export const readSpki = (spki: Uint8Array): PublicKeyInfo => {
  const info = readSpkiToImport(spki)
  if (!validPoint[info.type](info.bits)) malformed(`not a valid ${info.type} public key`)
  return info
}

/**
 * For keys that are imported right after: OpenSSL takes no point that is off its curve, and checks that much faster. It
 * does take an Ed25519 key of small order, so those are refused here all the same.
 */
export const readSpkiToImport = (spki: Uint8Array): PublicKeyInfo =>
  readDer(spki, (top) => {
    const info = top.inside(tags.sequence)
    const type = readKeyType(info.inside(tags.sequence))
    const bits = readWholeBits(info)
    info.finish()
    if (!validShape[type](bits)) malformed(`not a valid ${type} public key`)
    return { type, bits }
  })

const validPoint: Record<KeyType, (bits: Uint8Array) => boolean> = {
  ed25519: isEd25519Key,
  p256: (bits) => isPointOf(p256, bits),
  p384: (bits) => isPointOf(p384, bits),
}

const validShape: Record<KeyType, (bits: Uint8Array) => boolean> = {
  ed25519: isEd25519Key,
  p256: (bits) => isUncompressed(p256, bits),
  p384: (bits) => isUncompressed(p384, bits),
}

const readKeyType = (algorithm: DerReader): KeyType => {
  const oid = readOid(algorithm)
  if (oid === oids.ed25519) {
    algorithm.finish()
    return 'ed25519'
  }
  if (oid === oids.rsaEncryption) return malformed('an RSA key; use Ed25519, P-256 or P-384')
  if (oid !== oids.ecPublicKey) return malformed(`a key of unknown kind ${oid}; use Ed25519, P-256 or P-384`)
  if (algorithm.next !== tags.oid) return malformed('a curve that is not named')
  const curve = readOid(algorithm)
  algorithm.finish()
  if (curve === oids.p256) return 'p256'
  if (curve === oids.p384) return 'p384'
  return malformed(`a key on the unknown curve ${curve}; use P-256 or P-384`)
}

/** Of the 32 bytes of a public key; null: it is none. */
export const ed25519Spki = (key: Uint8Array): Uint8Array | null =>
  isEd25519Key(key) ? encode(sequence(sequence(oid(oids.ed25519)), bits(key))) : null

export const keyTypeOfSpki = (spki: Uint8Array): KeyType | null => {
  const info = orMalformed(() => readSpki(spki))
  return 'kind' in info ? null : info.type
}

/** The subject key identifier: the first 160 bits of the SHA-256 of the key's bits (RFC 7093, method 1), hex. */
export const keyId = (spki: Uint8Array): string => hash('sha256', readSpkiToImport(spki).bits, 'hex').slice(0, 40)

/** Of the key's bits alone, hex: how OCSP names an issuer and a responder. */
export const keyHash = (spki: Uint8Array, algorithm: 'sha1' | 'sha256'): string =>
  hash(algorithm, readSpkiToImport(spki).bits, 'hex')

/** SHA-256 of the whole SubjectPublicKeyInfo, hex. */
export const spkiHash = (spki: Uint8Array): string => hash('sha256', spki, 'hex')
