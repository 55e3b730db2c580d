import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  authority,
  day,
  hierarchy,
  hold,
  issuingCa,
  leaf,
  nodeOrder,
  nowMs,
  parsed,
  serial,
  serverOrder,
  workerOrder,
} from '../../test/vectors/pki-hierarchy.ts'
import { domainCaSpec, issuingSpec, leafSpec, rootSpec } from './authority-certificates.ts'
import { buildCertificate, serialHex } from './certificate.ts'
import { generateKey } from './keys.ts'
import { isSignedBy, issuerAndSerial } from './parse-certificate.ts'

const { root, domainCa, issuing } = hierarchy('p256', nowMs)
const key = generateKey('p256')

test('root, domain CA and issuing CA have path lengths 2, 1 and 0, and may sign certificates and nothing else', () => {
  assert.deepEqual(
    [root, domainCa, issuing].map((one) => one.certificate.pathLen),
    [2, 1, 0],
  )
  for (const { certificate } of [root, domainCa, issuing]) {
    assert.equal(certificate.ca, true)
    assert.deepEqual(certificate.keyUsage, ['keyCertSign', 'cRLSign'])
    assert.deepEqual(certificate.extendedKeyUsage, [])
  }
  assert.ok(isSignedBy(root.certificate, root.certificate))
  assert.ok(isSignedBy(domainCa.certificate, root.certificate))
  assert.ok(isSignedBy(issuing.certificate, domainCa.certificate))
})

test('a root of path length 1 has room for an issuing CA and none for a domain CA', () => {
  const rootKey = generateKey('p256')
  const short = hold(rootKey, rootSpec({ ...authority(rootKey, 3650 * day, nowMs), pathLen: 1 }), rootKey)
  assert.equal(issuingCa('p256', short, nowMs).certificate.pathLen, 0)
  assert.throws(() => domainCaSpec(authority(key, day, nowMs), short.certificate), /no room/)
  assert.throws(() => issuingSpec(authority(key, day, nowMs), issuing.certificate), /no room/)
  const node = leaf(key, nodeOrder(key, {}), issuing)
  assert.throws(() => issuingSpec(authority(key, day, nowMs), node.certificate), /no room/)
})

test('a leaf is for signing only, with the usage and the names of its order', () => {
  const node = leaf(key, nodeOrder(key, {}), issuing).certificate
  assert.equal(node.subject, 'CN=node-gpu-001, O=example.test, OU=nodes')
  assert.deepEqual(node.uris, ['spiffe://example.test/node/gpu-001'])
  assert.deepEqual(node.extendedKeyUsage, ['clientAuth'])
  const worker = leaf(key, workerOrder(key), issuing).certificate
  assert.deepEqual([worker.uris, worker.dnsNames, worker.ips], [[], [], []])
  const server = leaf(key, serverOrder(key, {}), issuing).certificate
  assert.deepEqual(server.extendedKeyUsage, ['serverAuth'])
  assert.deepEqual(server.dnsNames, ['plane.example.test', '*.internal.example.test', 'localhost'])
  assert.deepEqual(server.ips, ['127.0.0.1', '::1'])
  for (const certificate of [node, worker, server]) {
    assert.deepEqual([certificate.ca, certificate.pathLen], [false, null])
    assert.deepEqual(certificate.keyUsage, ['digitalSignature'])
    assert.ok(isSignedBy(certificate, issuing.certificate))
  }
})

test('backdating adds nothing to the lifetime, which counts from the time of issue', () => {
  const { notBeforeMs, notAfterMs } = leaf(key, nodeOrder(key, { issuedAtMs: nowMs + 1 }), issuing).certificate
  assert.equal(notBeforeMs, nowMs - 60_000)
  assert.equal(notAfterMs, nowMs + day)
})

test('nothing outlives its issuer', () => {
  const long = leaf(key, nodeOrder(key, { lifetimeMs: 20_000 * day }), issuing).certificate
  assert.equal(long.notAfterMs, issuing.certificate.notAfterMs)
  const ca = hold(key, issuingSpec(authority(key, 20_000 * day, nowMs), root.certificate), root.key)
  assert.equal(ca.certificate.notAfterMs, root.certificate.notAfterMs)
})

test('an issuer that has ended signs nothing any more', () => {
  const late = nodeOrder(key, { issuedAtMs: issuing.certificate.notAfterMs + 2 * day })
  assert.throws(() => leaf(key, late, issuing), /ends before it begins/)
})

test('a certificate is found by the key that signed it and its serial', () => {
  for (const bytes of [serial(), Uint8Array.of(0, 0x0a, ...serial().subarray(2)), new Uint8Array(16).fill(0xff)]) {
    const der = buildCertificate(leafSpec(nodeOrder(key, {}), issuing.certificate, bytes), issuing.key)
    assert.deepEqual(issuerAndSerial(der), { issuer: issuing.certificate.subjectKeyId, serial: serialHex(bytes) })
    assert.equal(parsed(der).serial, serialHex(bytes))
  }
  assert.equal(issuerAndSerial(Uint8Array.of(0x30, 0)), null)
  assert.equal(issuerAndSerial(new Uint8Array(0)), null)
})

test('what makes no valid certificate is a bug, and is never signed', () => {
  const spec = leafSpec(nodeOrder(key, {}), issuing.certificate, serial())
  const bad = [
    { ...spec, serial: new Uint8Array(16) },
    { ...spec, serial: new Uint8Array(21).fill(1) },
    { ...spec, subject: { cn: 'x'.repeat(65), o: null, ou: null } },
    { ...spec, spki: Uint8Array.of(0x30, 0) },
    { ...spec, extensions: { ...spec.extensions, ips: ['localhost'] } },
    { ...spec, extensions: { ...spec.extensions, dnsNames: ['exämple.test'] } },
    { ...spec, extensions: { ...spec.extensions, uris: ['spiffe://a b'] } },
    { ...spec, subject: { cn: null, o: null, ou: null }, extensions: { ...spec.extensions, uris: [] } },
  ]
  for (const one of bad) assert.throws(() => buildCertificate(one, issuing.key))
})
