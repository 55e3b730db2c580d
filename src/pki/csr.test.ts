import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCsr, readRequestNames } from './csr.ts'
import { contextOf, tags } from './der.ts'
import { constructed, encode, oid, raw, sequence, smallNumber, text, type Der } from './der-writer.ts'
import { generateKey } from './keys.ts'
import { oids } from './oids.ts'
import { fromPem } from './pem.ts'

const key = generateKey('p256')
const der = (pem: string): Uint8Array => fromPem('CERTIFICATE REQUEST', pem) ?? assert.fail('no PEM')

/** Nothing of it is verified here: it stands for a request that was. */
const requestWith = (names: readonly Der[], attributes: readonly Der[]): Uint8Array =>
  encode(
    sequence(
      sequence(smallNumber(0), sequence(...names), raw(key.spki), constructed(contextOf(0), attributes)),
      sequence(oid(oids.ecdsaWithSha256)),
      raw(Uint8Array.of(3, 2, 0, 1)),
    ),
  )
const part = (type: string, value: string): Der =>
  constructed(tags.set, [sequence(oid(type), text(tags.utf8String, value))])
const extensionRequest = (...ids: readonly string[]): Der =>
  sequence(
    oid(oids.extensionRequest),
    constructed(tags.set, [sequence(...ids.map((id) => sequence(oid(id), text(tags.octetString, ''))))]),
  )

test('the common name of a request is read as others read it: the last one', () => {
  assert.deepEqual(readRequestNames(der(makeCsr(key, 'gpu-001'))), {
    kind: 'names',
    commonName: 'gpu-001',
    hasAltNames: false,
  })
  const two = requestWith(
    [part(oids.commonName, 'one'), part(oids.organization, 'o'), part(oids.commonName, 'two')],
    [],
  )
  assert.deepEqual(readRequestNames(two), { kind: 'names', commonName: 'two', hasAltNames: false })
  assert.deepEqual(readRequestNames(requestWith([], [])), { kind: 'names', commonName: null, hasAltNames: false })
})

test('alternative names are found among other extensions, and nothing else is taken for them', () => {
  const has = (...attributes: readonly Der[]): boolean => {
    const names = readRequestNames(requestWith([], attributes))
    return names.kind === 'names' ? names.hasAltNames : assert.fail(names.why)
  }
  assert.equal(has(extensionRequest(oids.keyUsage, oids.subjectAltName)), true)
  assert.equal(has(extensionRequest(oids.keyUsage)), false)
  assert.equal(has(extensionRequest()), false)
  const challenge = sequence(oid('1.2.840.113549.1.9.7'), constructed(tags.set, [text(tags.utf8String, 'x')]))
  assert.equal(has(challenge), false)
})

test('what is no request is malformed', () => {
  assert.equal(readRequestNames(Buffer.from('x')).kind, 'malformed')
})
