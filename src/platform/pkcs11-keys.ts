// Keys on elliptic curves in a token, Ed25519 among them: found by label and id, made, and signed with.

import { createHash, createPublicKey, verify } from 'node:crypto'
import type { Curve, KeyPlace, Order } from './pkcs11-messages.ts'
import type { Attribute, Pkcs11Library } from './pkcs11-library.ts'

/** The token is well, and has not the key that is wanted. */
export class KeyTrouble extends Error {
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}

const attribute = {
  class: 0x0,
  token: 0x1,
  private: 0x2,
  label: 0x3,
  keyType: 0x100,
  id: 0x102,
  sensitive: 0x103,
  sign: 0x108,
  verify: 0x10a,
  extractable: 0x162,
  ecParams: 0x180,
  ecPoint: 0x181,
} as const

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

const yes = Buffer.of(1)
const no = Buffer.of(0)
const publicKeys: Attribute = [attribute.class, number(2)]
const privateKeys: Attribute = [attribute.class, number(3)]

export type Family = 'ecdsa' | 'eddsa'

/** CKK, and the mechanisms that make such keys and sign with them. Ed25519 signs the data itself. */
const families: Readonly<Record<Family, { readonly keys: Attribute; readonly make: number; readonly sign: number }>> = {
  ecdsa: { keys: [attribute.keyType, number(0x3)], make: 0x1040, sign: 0x1041 },
  eddsa: { keys: [attribute.keyType, number(0x40)], make: 0x1055, sign: 0x1057 },
}

type OnCurve = { readonly family: Family; readonly params: readonly Buffer[]; readonly bytes: number }

/** The curves by their names in DER, the first as we give it, and the length of a coordinate. */
const curves: Readonly<Record<Curve, OnCurve>> = {
  'P-256': { family: 'ecdsa', params: [Buffer.from('06082a8648ce3d030107', 'hex')], bytes: 32 },
  'P-384': { family: 'ecdsa', params: [Buffer.from('06052b81040022', 'hex')], bytes: 48 },
  Ed25519: {
    family: 'eddsa',
    params: [Buffer.from('06032b6570', 'hex'), Buffer.from('130c656477617264733235353139', 'hex')],
    bytes: 32,
  },
}

export const familyOf = (spki: Uint8Array): Family =>
  publicKeyOf(spki).asymmetricKeyType === 'ed25519' ? 'eddsa' : 'ecdsa'

const publicKeyOf = (spki: Uint8Array) => createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })

const namesOf = ({ label, id }: Pick<KeyPlace, 'label' | 'id'>): readonly Attribute[] => [
  ...(label === null ? [] : [[attribute.label, Buffer.from(label)] as const]),
  ...(id === null ? [] : [[attribute.id, Buffer.from(id, 'hex')] as const]),
]

const wordsOf = ({ token, label, id }: KeyPlace): string =>
  `${[label, id === null ? null : `id ${id}`].filter((one) => one !== null).join(', ')} in the token ${token}`

/** Throws `KeyTrouble` where there is none, or more than one. */
export const privateKeyOf = (
  library: Pkcs11Library,
  session: bigint,
  place: KeyPlace,
  wanted: readonly Family[] = ['ecdsa', 'eddsa'],
): bigint => {
  const [key, other] = wanted.flatMap((family) =>
    library.find(session, [privateKeys, families[family].keys, ...namesOf(place)]),
  )
  if (key === undefined)
    throw new KeyTrouble(
      `there is no EC private key ${wordsOf(place)}`,
      'Look what is in it (pkcs11-tool --login --list-objects); names are case-sensitive',
    )
  if (other !== undefined)
    throw new KeyTrouble(`more than one key is called ${wordsOf(place)}`, 'Name it by its id, too: ;id=%01%02')
  return key
}

/** SubjectPublicKeyInfo of a pair that is there. */
export const findPair = (library: Pkcs11Library, session: bigint, place: KeyPlace): Uint8Array => {
  const key = privateKeyOf(library, session, place)
  // The two halves of a pair have the same id; their labels may differ.
  const id = library.attribute(session, key, attribute.id)
  const same: readonly Attribute[] = id.length > 0 ? [[attribute.id, id]] : namesOf(place)
  const [publicKey] = Object.values(families).flatMap(({ keys }) => library.find(session, [publicKeys, keys, ...same]))
  if (publicKey === undefined)
    throw new KeyTrouble(`there is no public key beside ${wordsOf(place)}`, 'Put the public half into the token, too')
  return spkiOf(library, session, publicKey, wordsOf(place))
}

/** A name that is taken is never given to a second key: no one could say afterwards which of them signed. */
export const makePair = (
  library: Pkcs11Library,
  session: bigint,
  place: KeyPlace & { readonly label: string },
  curve: Curve,
): Uint8Array => {
  const [taken] = library.find(session, [privateKeys, ...namesOf(place)])
  if (taken !== undefined) throw new KeyTrouble(`there is a key ${wordsOf(place)} already`, 'Choose another label')
  const id =
    place.id === null ? createHash('sha256').update(place.label).digest().subarray(0, 16) : Buffer.from(place.id, 'hex')
  const both: readonly Attribute[] = [
    [attribute.token, yes],
    [attribute.label, Buffer.from(place.label)],
    [attribute.id, id],
  ]
  const { family, params } = curves[curve]
  const publicKey = library.generateKeyPair(
    session,
    families[family].make,
    [...both, [attribute.verify, yes], [attribute.ecParams, params[0] ?? Buffer.alloc(0)]],
    [...both, [attribute.private, yes], [attribute.sensitive, yes], [attribute.extractable, no], [attribute.sign, yes]],
  )
  return spkiOf(library, session, publicKey, wordsOf(place))
}

const spkiOf = (library: Pkcs11Library, session: bigint, publicKey: bigint, words: string): Uint8Array => {
  const params = library.attribute(session, publicKey, attribute.ecParams)
  const point = library.attribute(session, publicKey, attribute.ecPoint)
  const curve = (['P-256', 'P-384', 'Ed25519'] as const).find((one) =>
    curves[one].params.some((name) => name.equals(params)),
  )
  if (curve === undefined)
    throw new KeyTrouble(`the key ${words} is on a curve that is not used here`, 'Make a P-256 or a P-384 key')
  const { family, bytes } = curves[curve]
  if (family === 'eddsa') {
    const bare = point.subarray(point.length - bytes)
    if (bare.length !== bytes) throw new KeyTrouble(`the public key of ${words} is none of Ed25519`, 'Make another key')
    const okp = { kty: 'OKP', crv: curve, x: bare.toString('base64url') }
    return createPublicKey({ format: 'jwk', key: okp }).export({ type: 'spki', format: 'der' })
  }
  // An OCTET STRING around an uncompressed point; some tokens leave the OCTET STRING out.
  const bare = point.subarray(point.length - 1 - 2 * bytes)
  if (bare.length !== 1 + 2 * bytes || bare[0] !== 4)
    throw new KeyTrouble(`the public key of ${words} is not an uncompressed point`, 'Make a P-256 or a P-384 key')
  const x = bare.toString('base64url', 1, 1 + bytes)
  const y = bare.toString('base64url', 1 + bytes)
  const key = createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: curve, x, y } })
  return key.export({ type: 'spki', format: 'der' })
}

/** Of ECDSA r and s, as long as the curve has it. Throws where it is not by the key that it should be by. */
export const rawSignature = (
  library: Pkcs11Library,
  session: bigint,
  key: bigint,
  { data, spki, key: place }: Extract<Order, { kind: 'sign' }>,
): Uint8Array => {
  const publicKey = publicKeyOf(spki)
  const family = familyOf(spki)
  const digest = publicKey.asymmetricKeyDetails?.namedCurve === 'secp384r1' ? 'sha384' : 'sha256'
  const input = family === 'eddsa' ? Buffer.from(data) : createHash(digest).update(data).digest()
  const signature = library.sign(session, key, families[family].sign, input)
  const isGood = verify(
    family === 'eddsa' ? null : digest,
    data,
    { key: publicKey, dsaEncoding: 'ieee-p1363' },
    signature,
  )
  if (!isGood)
    throw new KeyTrouble(
      `a signature of ${wordsOf(place)} is not by the key that is on record: it was not used`,
      'Find out which key has that name now (pkcs11-tool --login --list-objects)',
    )
  return signature
}
