// Private keys that never show themselves, except on purpose as PKCS#8.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { KeyType } from '#domain/core/profile.ts'
import { fromPem, toPem } from './pem.ts'
import { algorithmOf, digestOf, verifyAs } from './signature.ts'
import type { Signer } from './signer.ts'
import { keyTypeOfSpki } from './spki.ts'

export { keyHash, keyId, keyTypeOfSpki, spkiHash } from './spki.ts'
export type { KeyType }

/** One that is here, and signs at once. */
export type PrivateKey = Omit<Signer, 'sign'> & {
  sign(data: Uint8Array): Uint8Array
  /** The secret itself, PEM. */
  pkcs8Pem(): string
}

export const generateKey = (type: KeyType): PrivateKey => privateKey(generated(type))

const generated = (type: KeyType): KeyObject => {
  switch (type) {
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey
    case 'p256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    case 'p384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  }
}

/** Throws on anything but one unencrypted PKCS#8 key of a type we use; the message repeats nothing of the text. */
export const loadPrivateKey = (pem: string): PrivateKey => {
  const der = fromPem('PRIVATE KEY', pem)
  if (der === null) throw new Error('not a private key: expected one PEM block PRIVATE KEY (unencrypted PKCS#8)')
  return privateKey(imported(der))
}

const imported = (der: Uint8Array): KeyObject => {
  try {
    return createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' })
  } catch {
    // OpenSSL's own error is left out: it does not help, and its text may come from a secret.
    throw new Error('not a private key: the PEM block does not hold a PKCS#8 key')
  }
}

const privateKey = (key: KeyObject): PrivateKey => {
  const spki: Uint8Array = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const type = keyTypeOfSpki(spki)
  if (type === null) throw new Error('not a private key of a type we use: Ed25519, P-256 or P-384')
  const digest = digestOf[algorithmOf[type]]
  return {
    type,
    spki,
    sign: (data) => sign(digest, data, key),
    pkcs8Pem: () => toPem('PRIVATE KEY', key.export({ type: 'pkcs8', format: 'der' })),
  }
}

/** A signature made by `PrivateKey.sign` of the key with this public half. */
export const verifySignature = (spki: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean => {
  const type = keyTypeOfSpki(spki)
  return type !== null && verifyAs(algorithmOf[type], spki, data, signature)
}
