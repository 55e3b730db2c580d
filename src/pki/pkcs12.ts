// A key and its chain as PKCS#12 (RFC 7292), for programs that read no PEM. The algorithms are those that OpenSSL 3, Java since
// 8u301 and Go read: AES-256 under PBKDF2 for the key, HMAC-SHA-256 over all of it. Certificates are not encrypted.

import { createCipheriv, createHmac, hash, pbkdf2Sync } from 'node:crypto'
import { contextOf, tags } from './der.ts'
import { constructed, type Der, encode, octets, oid, primitive, raw, sequence, smallNumber } from './der-writer.ts'
import { keyId } from './spki.ts'

export type KeyBundle = {
  /** PKCS#8, DER, not encrypted. */
  readonly key: Uint8Array
  /** SubjectPublicKeyInfo of the key, DER. */
  readonly spki: Uint8Array
  /** DER, the leaf first. */
  readonly chain: readonly Uint8Array[]
  /** What Java calls the alias. ASCII. */
  readonly name: string
  /** ASCII. */
  readonly password: string
}

const id = {
  data: oid('1.2.840.113549.1.7.1'),
  shroudedKeyBag: oid('1.2.840.113549.1.12.10.1.2'),
  certBag: oid('1.2.840.113549.1.12.10.1.3'),
  x509Certificate: oid('1.2.840.113549.1.9.22.1'),
  friendlyName: oid('1.2.840.113549.1.9.20'),
  localKeyId: oid('1.2.840.113549.1.9.21'),
  pbes2: oid('1.2.840.113549.1.5.13'),
  pbkdf2: oid('1.2.840.113549.1.5.12'),
  hmacWithSha256: oid('1.2.840.113549.2.9'),
  aes256Cbc: oid('2.16.840.1.101.3.4.1.42'),
  sha256: oid('2.16.840.1.101.3.4.2.1'),
}

/** As many as Java and OpenSSL use. */
const iterations = 10_000
const saltBytes = 16
const nothing = primitive(tags.null, new Uint8Array(0))

/** DER. `randomBytes`: cryptographically strong. */
export const buildPkcs12 = (bundle: KeyBundle, randomBytes: (count: number) => Uint8Array): Uint8Array => {
  if (!/^[\x20-\x7e]+$/.test(bundle.password + bundle.name)) throw new Error('a password or a name that is not ASCII')
  const ofTheKey = attributes(bundle)
  const certificates = bundle.chain.map((der, place) => certificateBag(der, place === 0 ? ofTheKey : []))
  const key = bag(id.shroudedKeyBag, encryptedKey(bundle, randomBytes), ofTheKey)
  const safe = encode(sequence(contentOf(sequence(...certificates)), contentOf(sequence(key))))
  const mac = macOf(safe, bundle.password, randomBytes(saltBytes))
  return encode(sequence(smallNumber(3), contentOf(raw(safe)), mac))
}

const explicit = (value: Der): Der => constructed(contextOf(0), [value])

const contentOf = (value: Der): Der => sequence(id.data, explicit(constructed(tags.octetString, [value])))

const bag = (type: Der, value: Der, about: readonly Der[]): Der =>
  sequence(type, explicit(value), ...(about.length === 0 ? [] : [constructed(tags.set, about)]))

const certificateBag = (der: Uint8Array, about: readonly Der[]): Der =>
  bag(id.certBag, sequence(id.x509Certificate, explicit(octets(der))), about)

/** The same on the key and on its certificate: that is how a reader knows that they belong together. */
const attributes = ({ name, spki }: KeyBundle): Der[] =>
  [
    sequence(id.friendlyName, constructed(tags.set, [primitive(tags.bmpString, bmp(name))])),
    sequence(id.localKeyId, constructed(tags.set, [octets(Buffer.from(keyId(spki), 'hex'))])),
  ].sort((a, b) => Buffer.compare(encode(a), encode(b)))

const bmp = (ascii: string): Uint8Array => Buffer.from(ascii, 'utf16le').swap16()

/** EncryptedPrivateKeyInfo by PBES2 (RFC 8018). */
const encryptedKey = ({ key, password }: KeyBundle, randomBytes: (count: number) => Uint8Array): Der => {
  const salt = randomBytes(saltBytes)
  const iv = randomBytes(16)
  const cipher = createCipheriv('aes-256-cbc', pbkdf2Sync(password, salt, iterations, 32, 'sha256'), iv)
  const encrypted = Buffer.concat([cipher.update(key), cipher.final()])
  const derivation = sequence(octets(salt), smallNumber(iterations), sequence(id.hmacWithSha256, nothing))
  const scheme = sequence(sequence(id.pbkdf2, derivation), sequence(id.aes256Cbc, octets(iv)))
  return sequence(sequence(id.pbes2, scheme), octets(encrypted))
}

const macOf = (safe: Uint8Array, password: string, salt: Uint8Array): Der => {
  const digest = createHmac('sha256', macKey(password, salt)).update(safe).digest()
  return sequence(sequence(sequence(id.sha256, nothing), octets(digest)), octets(salt), smallNumber(iterations))
}

const blockBytes = 64
/** What the derived bytes are for (RFC 7292, B.3): a MAC. */
const forMac = 3

/** RFC 7292, B.2, for SHA-256 and as many bytes as it gives: one block, so that nothing is carried over to a second. */
const macKey = (password: string, salt: Uint8Array): Uint8Array => {
  const purpose = Buffer.alloc(blockBytes, forMac)
  const secret = Buffer.concat([bmp(password), Uint8Array.of(0, 0)])
  let derived: Uint8Array = Buffer.concat([purpose, wholeBlocks(salt), wholeBlocks(secret)])
  for (let round = 0; round < iterations; round++) derived = hash('sha256', derived, 'buffer')
  return derived
}

const wholeBlocks = (bytes: Uint8Array): Uint8Array =>
  Buffer.alloc(Math.ceil(bytes.length / blockBytes) * blockBytes, bytes)
