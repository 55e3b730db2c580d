import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { contextOf, tags } from './der.ts'
import {
  bool,
  constructed,
  type Der,
  encode,
  octets,
  oid,
  primitive,
  raw,
  sequence,
  smallNumber,
} from './der-writer.ts'
import { parseOcspRequest } from './ocsp-request.ts'
import { oids } from './oids.ts'

const digest = (length: number): Der => octets(new Uint8Array(length).fill(7))
const none = primitive(tags.null, new Uint8Array(0))

const certId = (algorithm: Der = sequence(oid(oids.sha1), none), length = 20): Der =>
  sequence(algorithm, digest(length), digest(length), smallNumber(0x1234))

const nonceOf = (length: number): Der =>
  sequence(oid(oids.ocspNonce), octets(encode(octets(new Uint8Array(length).fill(9)))))

const request = (asked: readonly Der[], extensions: readonly Der[] = [], rest: readonly Der[] = []): Uint8Array =>
  encode(
    sequence(
      sequence(
        sequence(...asked.map((one) => sequence(one))),
        ...(extensions.length === 0 ? [] : [constructed(contextOf(2), [sequence(...extensions)])]),
      ),
      ...rest,
    ),
  )

const why = (der: Uint8Array): string => {
  const parsed = parseOcspRequest(der)
  return parsed.kind === 'malformed' ? parsed.why : 'taken'
}

test('what is asked is read, by SHA-1 and SHA-256, with and without parameters, and a nonce with it', () => {
  const sha256 = certId(sequence(oid(oids.sha256)), 32)
  const parsed = parseOcspRequest(request([certId(), sha256], [nonceOf(16)]))
  assert.ok(parsed.kind === 'ocsp-request')
  assert.deepEqual(
    parsed.asked.map(({ hash, serial }) => [hash, serial]),
    [
      ['sha1', '1234'],
      ['sha256', '1234'],
    ],
  )
  assert.deepEqual(parsed.asked[1]?.der, encode(sha256), 'the answer repeats it byte for byte')
  assert.deepEqual(parsed.nonce, new Uint8Array(16).fill(9))
})

test('an unknown algorithm does not refuse the rest of a request: it matches no certificate', () => {
  const parsed = parseOcspRequest(request([certId(sequence(oid('2.16.840.1.101.3.4.2.2')), 48), certId()]))
  assert.ok(parsed.kind === 'ocsp-request')
  assert.deepEqual(
    parsed.asked.map(({ hash }) => hash),
    [null, 'sha1'],
  )
})

test('a signature on a request is ignored, whichever key made it', () => {
  const signature = constructed(contextOf(0), [
    sequence(sequence(oid(oids.ecdsaWithSha256)), primitive(tags.bitString, Uint8Array.of(0, 1))),
  ])
  assert.equal(why(request([certId()], [], [signature])), 'taken')
})

test('what is beyond its bounds is refused: certificates, nonce, digests, size, extensions that had to be understood', () => {
  const many = (count: number): Der[] => Array.from({ length: count }, () => certId())
  assert.equal(why(request(many(32))), 'taken')
  assert.match(why(request(many(33))), /more than 32/)
  assert.match(why(request([])), /asks for nothing/)
  assert.equal(why(request([certId()], [nonceOf(1)])), 'taken')
  assert.equal(why(request([certId()], [nonceOf(128)])), 'taken')
  for (const length of [0, 129]) assert.match(why(request([certId()], [nonceOf(length)])), /nonce/)
  assert.match(why(request([certId()], [nonceOf(8), nonceOf(8)])), /twice/)
  assert.match(why(request([certId(undefined, 32)])), /wrong length/)
  assert.match(why(request([certId()], [sequence(oid('1.2.3.4'), bool(true), octets(new Uint8Array(2)))])), /critical/)
  assert.equal(why(request([certId()], [sequence(oid('1.2.3.4'), octets(new Uint8Array(2)))])), 'taken')
  assert.match(why(new Uint8Array(4097)), /4096/)
  const versioned = sequence(constructed(contextOf(0), [smallNumber(0)]), sequence(sequence(certId())))
  assert.match(why(encode(sequence(versioned))), /version/)
  const negative = sequence(
    sequence(oid(oids.sha1)),
    digest(20),
    digest(20),
    primitive(tags.integer, Uint8Array.of(0x80)),
  )
  assert.match(why(request([negative])), /negative/)
  assert.match(why(Buffer.concat([request([certId()]), Uint8Array.of(0)])), /left over/)
})

test('whatever bytes come, they are taken or refused, and nothing is thrown', () => {
  const good = request([certId(), certId(sequence(oid(oids.sha256)), 32)], [nonceOf(32)])
  const damage = fc.array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 })), {
    minLength: 1,
    maxLength: 6,
  })
  fc.assert(
    fc.property(damage, fc.nat({ max: good.length }), (changes, length) => {
      const bytes = Uint8Array.from(good)
      for (const [at, value] of changes) bytes[at] = value
      for (const one of [bytes, bytes.subarray(0, length), encode(sequence(raw(bytes)))]) {
        const parsed = parseOcspRequest(one)
        if (parsed.kind === 'ocsp-request') assert.ok(parsed.asked.length <= 32 && (parsed.nonce?.length ?? 1) <= 128)
      }
    }),
    { numRuns: process.env['MUSTER_LONG'] === '1' ? 100_000 : 2000 },
  )
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void parseOcspRequest(bytes)))
})
