// Certificate requests that must be refused, each saying what is wrong with it. All are correctly signed unless the
// signature is what is wrong.

import { generateKeyPairSync, sign } from 'node:crypto'
import { contextOf, tags } from '#pki/der.ts'
import {
  bits,
  constructed,
  type Der,
  encode,
  oid,
  primitive,
  raw,
  sequence,
  smallNumber,
  text,
} from '#pki/der-writer.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { makeCsr } from '#pki/csr.ts'
import { encodeName } from '#pki/name.ts'
import { oids } from '#pki/oids.ts'
import { toPem } from '#pki/pem.ts'
import { algorithmIdentifier, algorithmOf } from '#pki/signature.ts'

export type HostileCsr = { readonly wrong: string; readonly pem: string; readonly why: RegExp }

const bytes = (hex: string): Der => raw(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const label = 'CERTIFICATE REQUEST'

type Parts = { version: Der; subject: Der; spki: Der; attributes: Der | null; algorithm: Der; after: Der[] }

const request = (key: PrivateKey, change: Partial<Parts>): Uint8Array => {
  const parts: Parts = {
    version: smallNumber(0),
    subject: raw(encodeName({ cn: 'node-1', o: null, ou: null })),
    spki: raw(key.spki),
    attributes: constructed(contextOf(0), []),
    algorithm: raw(algorithmIdentifier[algorithmOf[key.type]]),
    after: [],
    ...change,
  }
  const attributes = parts.attributes === null ? [] : [parts.attributes]
  const info = encode(sequence(parts.version, parts.subject, parts.spki, ...attributes))
  return encode(sequence(raw(info), parts.algorithm, bits(key.sign(info)), ...parts.after))
}

const attribute = (type: string, ...values: Der[]): Der => sequence(oid(type), constructed(tags.set, values))
const attributes = (...members: Der[]): Partial<Parts> => ({ attributes: constructed(contextOf(0), members) })
const extensionRequest = '1.2.840.113549.1.9.14'
const challengePassword = '1.2.840.113549.1.9.7'
const one = (value: Der): Partial<Parts> => attributes(attribute(extensionRequest, value))

const nested = (depth: number): Der => {
  let inner = smallNumber(1)
  for (let i = 0; i < depth; i++) inner = raw(encode(sequence(inner)))
  return inner
}

const ecKey = (curve: string, point: Uint8Array): Der =>
  sequence(sequence(oid(oids.ecPublicKey), oid(curve)), bits(point))

/** The point of a P-256 key: the last 65 bytes of its SubjectPublicKeyInfo. */
const pointOf = (key: PrivateKey): Uint8Array => key.spki.slice(-65)

const changed = (source: Uint8Array, at: number, xor: number): Uint8Array => {
  const copy = Uint8Array.from(source)
  copy[at] = (copy[at] ?? 0) ^ xor
  return copy
}

export const hostileCsrs = (): HostileCsr[] => {
  const p256 = generateKey('p256')
  const p384 = generateKey('p384')
  const ed25519 = generateKey('ed25519')
  const good = request(p256, {})
  const pemOf = (der: Uint8Array): string => toPem(label, der)
  const signed = (wrong: string, why: RegExp, change: Partial<Parts>): HostileCsr => ({
    wrong,
    why,
    pem: pemOf(request(p256, change)),
  })
  const der = (wrong: string, why: RegExp, value: Uint8Array): HostileCsr => ({ wrong, why, pem: pemOf(value) })
  const framed = (header: string, body: Uint8Array): Uint8Array => Buffer.concat([Buffer.from(header, 'hex'), body])
  const body = good.subarray(3)
  const length = body.length.toString(16).padStart(2, '0')

  return [
    // proof of possession
    der('the signature has a bit flipped', /signature is not by the key/, changed(good, good.length - 1, 1)),
    der(
      'the signature is by another key',
      /signature is not by the key/,
      request(generateKey('p256'), { spki: raw(p256.spki) }),
    ),
    der('the name was changed after signing', /signature is not by the key/, changed(good, indexOf(good, 'node-1'), 1)),
    signed('the signature algorithm is of another kind than the key', /cannot make/, {
      algorithm: raw(algorithmIdentifier.ed25519),
    }),
    signed('the signature claims another digest', /signature is not by the key/, {
      algorithm: raw(algorithmIdentifier['ecdsa-sha384']),
    }),
    signed('the signature algorithm has NULL parameters', /with parameters/, {
      algorithm: sequence(oid(oids.ecdsaWithSha256), bytes('0500')),
    }),
    signed('the signature algorithm is ecdsa-with-SHA1', /unknown signature algorithm/, {
      algorithm: sequence(oid('1.2.840.10045.4.1')),
    }),
    der('the signature is empty', /signature is not by the key/, unsignedRequest(p256, Uint8Array.of())),
    der(
      'the Ed25519 signature is all zeros',
      /signature is not by the key/,
      unsignedRequest(ed25519, new Uint8Array(64)),
    ),
    der('the key is the neutral element, for which anyone can sign', /not a valid ed25519/, neutralElement()),

    // the key
    { wrong: 'the key is RSA', why: /RSA key/, pem: rsaRequest() },
    signed('the key is for key agreement only', /unknown kind 1\.3\.101\.110/, {
      spki: sequence(sequence(oid('1.3.101.110')), bits(new Uint8Array(32).fill(7))),
    }),
    { wrong: 'the key is on secp256k1', why: /unknown curve/, pem: otherCurve('secp256k1') },
    { wrong: 'the key is on P-521', why: /unknown curve/, pem: otherCurve('P-521') },
    signed('the point is off the curve', /not a valid p256/, { spki: ecKey(oids.p256, changed(pointOf(p256), 64, 1)) }),
    signed('the point is compressed', /not a valid p256/, { spki: ecKey(oids.p256, compressed(pointOf(p256))) }),
    signed('the point is in hybrid form', /not a valid p256/, { spki: ecKey(oids.p256, hybrid(pointOf(p256))) }),
    signed('the point is at infinity', /not a valid p256/, { spki: ecKey(oids.p256, Uint8Array.of(0)) }),
    signed('the point is cut short', /not a valid p256/, { spki: ecKey(oids.p256, pointOf(p256).subarray(0, 64)) }),
    signed('a P-256 point claims to be on P-384', /not a valid p384/, { spki: ecKey(oids.p384, pointOf(p256)) }),
    signed('a coordinate is not reduced', /not a valid p256/, {
      spki: ecKey(oids.p256, new Uint8Array(65).fill(0xff).fill(4, 0, 1)),
    }),
    signed('the curve parameters are written out', /not named/, {
      spki: sequence(sequence(oid(oids.ecPublicKey), sequence(smallNumber(1))), bits(pointOf(p256))),
    }),
    signed('the curve is missing', /not named/, {
      spki: sequence(sequence(oid(oids.ecPublicKey)), bits(pointOf(p256))),
    }),
    signed('the Ed25519 key has NULL parameters', /left over/, {
      spki: sequence(sequence(oid(oids.ed25519), bytes('0500')), bits(new Uint8Array(32).fill(7))),
    }),
    signed('the Ed25519 key has 31 bytes', /not a valid ed25519/, {
      spki: sequence(sequence(oid(oids.ed25519)), bits(new Uint8Array(31).fill(7))),
    }),
    signed('the Ed25519 key is not reduced', /not a valid ed25519/, {
      spki: sequence(sequence(oid(oids.ed25519)), bits(new Uint8Array(32).fill(0xff).fill(0xf3, 0, 1).fill(0x7f, 31))),
    }),
    signed('the key has unused bits', /whole bytes/, {
      spki: sequence(
        sequence(oid(oids.ecPublicKey), oid(oids.p256)),
        primitive(tags.bitString, Uint8Array.of(1, ...pointOf(p256))),
      ),
    }),
    signed('the key has bytes after it', /left over/, {
      spki: sequence(sequence(oid(oids.ecPublicKey), oid(oids.p256)), bits(pointOf(p256)), smallNumber(0)),
    }),

    // the frame
    signed('the version is 1', /version/, { version: smallNumber(1) }),
    signed('the version is negative', /out of range/, { version: bytes('0201ff') }),
    signed('the version is not in its shortest form', /shortest form/, { version: bytes('02020000') }),
    signed('the version is an empty integer', /empty integer/, { version: bytes('0200') }),
    signed('the version is a boolean', /expected integer/, { version: bytes('0101ff') }),
    signed('the attributes are missing', /expected|cut short/, { attributes: null }),
    signed('there is a fourth element', /left over/, { after: [smallNumber(0)] }),
    der('a byte follows', /left over/, framed('', Buffer.concat([good, Uint8Array.of(0)]))),
    der('a second request follows', /left over/, Buffer.concat([good, good])),
    der('the last byte is missing', /beyond the end/, good.subarray(0, -1)),
    der(
      'the outer length is indefinite',
      /indefinite/,
      Buffer.concat([Buffer.from('3080', 'hex'), body, Buffer.from('0000', 'hex')]),
    ),
    der('the outer length has a leading zero', /shortest form/, framed(`308200${length}`, body)),
    der('the outer length is giant', /giant/, framed('3084ffffffff', body)),
    der('the outer length takes 126 bytes', /giant/, framed('30fe', body)),
    der('the outer length goes beyond the end', /beyond the end/, framed('3082ffff', body)),
    der('the outer tag takes two bytes', /expected sequence/, framed(`3f3081${length}`, body)),
    der('it is one null byte', /expected sequence/, Uint8Array.of(0)),
    der('it is an empty sequence', /cut short/, Uint8Array.of(0x30, 0x00)),

    // what is not used, and still has to be DER
    signed('an attribute is nested 2,500 deep', /too deep/, one(nested(2500))),
    signed('an attribute is nested 20 deep', /too deep/, one(nested(20))),
    signed('an attribute holds a boolean of 01', /boolean/, one(bytes('010101'))),
    signed('an attribute holds a boolean of two bytes', /boolean/, one(bytes('0102ffff'))),
    signed('an attribute holds an integer not in its shortest form', /shortest form/, one(bytes('0202007f'))),
    signed('an attribute holds a negative integer not in its shortest form', /shortest form/, one(bytes('0202ffff'))),
    signed('an attribute holds an object identifier with padding', /shortest form/, one(bytes('0603 55 80 01'))),
    signed('an attribute holds an object identifier cut short', /cut short/, one(bytes('0602 55 81'))),
    signed('an attribute holds an empty object identifier', /cut short/, one(bytes('0600'))),
    signed('an attribute holds an indefinite length', /indefinite/, one(bytes('3080 0201 01 0000'))),
    signed('an attribute holds a constructed string', /constructed/, one(bytes('2c05 0c03 616263'))),
    signed('an attribute holds a primitive sequence', /primitive/, one(bytes('1003 020101'))),
    signed('an attribute holds a null with content', /null/, one(bytes('0501 00'))),
    signed('an attribute holds a tag of two bytes', /more than one byte/, one(bytes('9f2001 00'))),
    signed('an attribute holds unused bits that are set', /unused bits/, one(bytes('0302 01 ff'))),
    signed('an attribute holds a set out of order', /out of order/, one(bytes('3106 020102 020101'))),
    signed('an attribute holds a length beyond its end', /beyond the end/, one(bytes('0405 00'))),
    signed(
      'the attributes are out of order',
      /out of order/,
      attributes(attribute(extensionRequest, smallNumber(1)), attribute(challengePassword, smallNumber(1))),
    ),
    signed(
      'an attribute comes twice',
      /twice/,
      attributes(attribute(challengePassword, smallNumber(1)), attribute(challengePassword, smallNumber(2))),
    ),
    signed(
      'an attribute has a sequence of values',
      /set of values/,
      attributes(sequence(oid(challengePassword), sequence(smallNumber(1)))),
    ),
    signed(
      'an attribute has something after its values',
      /left over/,
      attributes(sequence(oid(challengePassword), constructed(tags.set, [smallNumber(1)]), smallNumber(1))),
    ),
    signed(
      'there are 40 attributes',
      /too many/,
      attributes(...Array.from({ length: 40 }, (_, i) => attribute(`1.2.3.${i + 10}`, smallNumber(1)))),
    ),
    signed('the subject is a set', /expected sequence/, { subject: constructed(tags.set, []) }),
    signed('the subject has an empty part', /empty part/, { subject: sequence(constructed(tags.set, [])) }),
    signed('the subject has a part out of order', /out of order/, {
      subject: sequence(
        constructed(tags.set, [
          sequence(oid('2.5.4.10'), text(tags.utf8String, 'b')),
          sequence(oid('2.5.4.3'), text(tags.utf8String, 'a')),
        ]),
      ),
    }),
    signed('the subject is not UTF-8', /UTF-8/, {
      subject: sequence(constructed(tags.set, [sequence(oid('2.5.4.3'), bytes('0c02c328'))])),
    }),
    signed('the subject has 200 parts', /too many parts/, {
      subject: sequence(
        ...Array.from({ length: 200 }, () =>
          constructed(tags.set, [sequence(oid('2.5.4.11'), text(tags.utf8String, 'x'))]),
        ),
      ),
    }),

    // the text
    { wrong: 'the text is empty', why: /PEM/, pem: '' },
    { wrong: 'the text is larger than any request', why: /more than/, pem: 'A'.repeat(100_000) },
    { wrong: 'the label is of a certificate', why: /PEM/, pem: toPem('CERTIFICATE', good) },
    { wrong: 'there are two blocks', why: /PEM/, pem: pemOf(good) + pemOf(good) },
    { wrong: 'words stand before the block', why: /PEM/, pem: 'Certificate Request:\n' + pemOf(good) },
    { wrong: 'a header stands in the block', why: /PEM/, pem: pemOf(good).replace('\n', '\nProc-Type: 4\n\n') },
    { wrong: 'the base64 has a character that is none', why: /PEM/, pem: pemOf(good).replace(/M/, '!') },
    { wrong: 'the base64 has a space in it', why: /PEM/, pem: pemOf(good).replace(/M/, ' M') },
    { wrong: 'the base64 is of the kind for URLs', why: /PEM/, pem: pemOf(good).replace(/\n[A-Za-z]/, '\n_') },
    { wrong: 'the block does not end', why: /PEM/, pem: pemOf(good).slice(0, -10) },
    {
      wrong: 'the P-384 signature is by another key',
      why: /signature is not/,
      pem: pemOf(request(generateKey('p384'), { spki: raw(p384.spki) })),
    },
  ]
}

const indexOf = (der: Uint8Array, needle: string): number => Buffer.from(der).indexOf(needle)

const unsignedRequest = (key: PrivateKey, signature: Uint8Array): Uint8Array =>
  request({ ...key, sign: () => signature }, {})

const compressed = (point: Uint8Array): Uint8Array =>
  Uint8Array.of(2 + ((point[64] ?? 0) & 1), ...point.subarray(1, 33))

const hybrid = (point: Uint8Array): Uint8Array => Uint8Array.of(6 + ((point[64] ?? 0) & 1), ...point.subarray(1))

/** For the key 1 and the signature (1, 0) the equation S·B = R + k·A holds for any message. */
const neutralElement = (): Uint8Array => {
  const neutral = Uint8Array.of(1, ...new Uint8Array(31))
  const signature = Uint8Array.of(...neutral, ...new Uint8Array(32))
  const spki = encode(sequence(sequence(oid(oids.ed25519)), bits(neutral)))
  return request({ type: 'ed25519', spki, sign: () => signature, pkcs8Pem: () => '' }, {})
}

const rsaRequest = (): string => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return foreignRequest(publicKey.export({ type: 'spki', format: 'der' }), (data) => sign('sha256', data, privateKey))
}

const otherCurve = (namedCurve: string): string => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
  return foreignRequest(publicKey.export({ type: 'spki', format: 'der' }), (data) => sign('sha256', data, privateKey))
}

const foreignRequest = (spki: Uint8Array, signer: (data: Uint8Array) => Uint8Array): string =>
  toPem(label, request({ type: 'p256', spki, sign: signer, pkcs8Pem: () => '' }, {}))

/** A request as large as allowed whose every part is in order: what the worst of the good ones costs. */
export const largestGoodCsr = (key: PrivateKey): string => {
  const filler = (count: number): Der =>
    constructed(
      tags.sequence,
      Array.from({ length: count }, () => smallNumber(1)),
    )
  return toPem(label, request(key, one(filler(3900))))
}

export const goodCsr = (key: PrivateKey): string => makeCsr(key, 'node-1')
