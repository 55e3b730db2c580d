// JSON Web Tokens that we sign (RFC 7515), for servers that take our orders.

import type { KeyType } from '#domain/core/profile.ts'
import { readDer, tags } from './der.ts'
import { readInteger } from './der-values.ts'
import { type MadeWith, type Signer, signedWith } from './signer.ts'

/** `bytes`: of each of the two numbers in a signature; null: the signature is taken as it is. */
const kinds: Readonly<Record<KeyType, { readonly alg: string; readonly bytes: number | null }>> = {
  ed25519: { alg: 'EdDSA', bytes: null },
  p256: { alg: 'ES256', bytes: 32 },
  p384: { alg: 'ES384', bytes: 48 },
}

/** `header`: which key it is by, as `kid` or as `x5c`. The algorithm is that of the key. */
export const makeJwt = <S extends Signer>(signer: S, header: object, claims: object): MadeWith<S, string> => {
  const { alg, bytes } = kinds[signer.type]
  const text = `${encoded({ alg, typ: 'JWT', ...header })}.${encoded(claims)}`
  return signedWith(signer, Buffer.from(text, 'ascii'), (signature) => {
    const written = bytes === null ? signature : twoNumbers(signature, bytes)
    return `${text}.${Buffer.from(written).toString('base64url')}`
  })
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A signature of ECDSA is a sequence in DER, and here two numbers of a fixed length (RFC 7518, 3.4). */
const twoNumbers = (signature: Uint8Array, bytes: number): Uint8Array =>
  readDer(signature, (top) => {
    const pair = top.inside(tags.sequence)
    const numbers = [readInteger(pair), readInteger(pair)].map((number) => padded(number, bytes))
    pair.finish()
    return Buffer.concat(numbers)
  })

const padded = (number: Uint8Array, bytes: number): Buffer => {
  const digits = Buffer.from(number).subarray(number[0] === 0 ? 1 : 0)
  return Buffer.concat([Buffer.alloc(bytes - digits.length), digits])
}
