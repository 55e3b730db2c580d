import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orderServerCertificate, whyServerCertificateDue, type ServerCertificateFacts } from './server-certificate.ts'

const day = 24 * 3600 * 1000
const names = { dns: ['plane.example', 'localhost'], ip: ['127.0.0.1'] }
const current = { serial: '01', notBeforeMs: -60_000, issuedAtMs: 0, notAfterMs: 90 * day, names, marked: true }
const facts: ServerCertificateFacts = { current, wanted: names, issuerNotAfterMs: 1000 * day, nowMs: day }

test('a server certificate goes on until half its life, counted from its issue', () => {
  assert.equal(whyServerCertificateDue(facts), null)
  assert.equal(whyServerCertificateDue({ ...facts, nowMs: 45 * day - 1 }), null)
  assert.equal(whyServerCertificateDue({ ...facts, nowMs: 45 * day }), 'half life')
})

test('a first one, other names and a clock set back are reasons for a new one', () => {
  assert.equal(whyServerCertificateDue({ ...facts, current: null }), 'first one')
  assert.equal(whyServerCertificateDue({ ...facts, wanted: { ...names, dns: ['plane.example'] } }), 'names changed')
  assert.equal(whyServerCertificateDue({ ...facts, wanted: { ...names, ip: ['10.0.0.1'] } }), 'names changed')
  assert.equal(whyServerCertificateDue({ ...facts, nowMs: -61_000 }), 'clock set back')
  assert.equal(whyServerCertificateDue({ ...facts, current: { ...current, marked: false } }), 'no mark')
})

test('the same names in another order are no reason', () => {
  const wanted = { dns: ['localhost', 'plane.example'], ip: ['127.0.0.1', '127.0.0.1'] }
  assert.equal(whyServerCertificateDue({ ...facts, wanted }), null)
})

test('one that ends with its issuer is not renewed again and again towards that end', () => {
  assert.equal(whyServerCertificateDue({ ...facts, issuerNotAfterMs: 90 * day, nowMs: 80 * day }), null)
})

test('the order names the plane by its names and its mark, and nothing else', () => {
  const order = orderServerCertificate({
    id: 'o1',
    domain: 'test.example',
    names,
    publicKey: new Uint8Array([1]),
    lifetimeMs: 90 * day,
    nowMs: day,
  })
  assert.deepEqual(order.subject, { cn: 'plane.example', o: 'test.example', ou: 'control-plane' })
  assert.deepEqual([order.dnsSans, order.ipSans, order.uriSans], [names.dns, names.ip, ['spiffe://test.example/plane']])
  assert.equal(order.usage, 'server')
  assert.deepEqual(order.for, { kind: 'server' })
})
