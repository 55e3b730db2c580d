// The signature algorithms we know, and checking a signature.

import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { KeyType } from '#domain/core/profile.ts'
import { type DerReader, malformed, tags } from './der.ts'
import { readOid } from './der-values.ts'
import { encode, oid, sequence } from './der-writer.ts'
import { oids } from './oids.ts'

/** Which digest goes into the signature; Ed25519 takes the data itself. */
export type SignatureAlgorithm = 'ed25519' | 'ecdsa-sha256' | 'ecdsa-sha384' | 'ecdsa-sha512'

export const digestOf: Record<SignatureAlgorithm, string | null> = {
  ed25519: null,
  'ecdsa-sha256': 'sha256',
  'ecdsa-sha384': 'sha384',
  'ecdsa-sha512': 'sha512',
}

/** What our own keys sign with. */
export const algorithmOf: Record<KeyType, SignatureAlgorithm> = {
  ed25519: 'ed25519',
  p256: 'ecdsa-sha256',
  p384: 'ecdsa-sha384',
}

/** AlgorithmIdentifier, DER: none of ours has parameters. */
export const algorithmIdentifier: Record<SignatureAlgorithm, Uint8Array> = {
  ed25519: encode(sequence(oid(oids.ed25519))),
  'ecdsa-sha256': encode(sequence(oid(oids.ecdsaWithSha256))),
  'ecdsa-sha384': encode(sequence(oid(oids.ecdsaWithSha384))),
  'ecdsa-sha512': encode(sequence(oid(oids.ecdsaWithSha512))),
}

const byOid: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  [oids.ed25519, 'ed25519'],
  [oids.ecdsaWithSha256, 'ecdsa-sha256'],
  [oids.ecdsaWithSha384, 'ecdsa-sha384'],
  [oids.ecdsaWithSha512, 'ecdsa-sha512'],
])

/** PKCS#1, with any digest. */
const rsaSignatures = '1.2.840.113549.1.1.'

export const readSignatureAlgorithm = (reader: DerReader): SignatureAlgorithm => {
  const inside = reader.inside(tags.sequence)
  const found = readOid(inside)
  const algorithm = byOid.get(found)
  if (algorithm === undefined && found.startsWith(rsaSignatures))
    return malformed('a signature by an RSA key; use Ed25519, P-256 or P-384')
  if (algorithm === undefined) return malformed(`an unknown signature algorithm ${found}`)
  if (!inside.atEnd) malformed('a signature algorithm with parameters')
  return algorithm
}

/** Whether a key of this type could have made a signature of this algorithm. */
export const suits = (type: KeyType, algorithm: SignatureAlgorithm): boolean =>
  (type === 'ed25519') === (algorithm === 'ed25519')

/**
 * Who checks a signature: this thread, as `verifyAs` does, or another one. `spki` must have been read by `readSpkiToImport`, and the pair must suit.
 * Resolves to false for any signature that does not verify; throws or rejects where that could not be found out. The bytes must stay as they
 * are until then.
 */
export type VerifySignature = (
  algorithm: SignatureAlgorithm,
  spki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
) => boolean | Promise<boolean>

/** On this thread. */
export const verifyAs = (
  algorithm: SignatureAlgorithm,
  spki: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): boolean => {
  const key = importKey(spki)
  return key !== null && verify(digestOf[algorithm], data, key, signature)
}

const importKey = (spki: Uint8Array): KeyObject | null => {
  try {
    return createPublicKey({
      key: Buffer.from(spki.buffer, spki.byteOffset, spki.byteLength),
      format: 'der',
      type: 'spki',
    })
  } catch {
    return null
  }
}
