// Why the plane's listeners have no tickets, shown on listeners that do: without these the tests of the plane would pass
// for a client that never offers a session.

import assert from 'node:assert/strict'
import type { TLSSocket } from 'node:tls'
import { test, type TestContext } from 'node:test'
import type { ServerOptions } from 'node:https'
import { leafSpec } from '#pki/authority-certificates.ts'
import { buildCertificate, type CertificateSpec } from '#pki/certificate.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { eventually } from '../process/eventually.ts'
import { startLocalTlsServer, type LocalTlsServer } from '../process/local-tls-server.ts'
import type { Identity } from '../process/node-call.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { hierarchy, nodeOrder, serial } from '../vectors/pki-hierarchy.ts'

const ca = hierarchy('p256', Date.now() - 60_000)

/** Lives for `lifetimeMs` from now. */
const identityFor = (lifetimeMs: number): Identity & { notAfterMs: number } => {
  const key = generateKey('p256')
  const order = nodeOrder(key, { issuedAtMs: Date.now(), lifetimeMs })
  const spec = leafSpec(order, ca.issuing.certificate, serial())
  return { keyPem: key.pkcs8Pem(), chainPem: chainOf(spec), notAfterMs: spec.notAfterMs }
}

const chainOf = (leaf: CertificateSpec): string =>
  [buildCertificate(leaf, ca.issuing.key), ca.issuing.certificate.der, ca.domainCa.certificate.der]
    .map((der) => toPem('CERTIFICATE', der))
    .join('')

const roots = [toPem('CERTIFICATE', ca.root.certificate.der)]

/** Asks for a certificate, as Node does it by default, and answers how it was judged. */
const listener = async (t: TestContext, options: ServerOptions): Promise<LocalTlsServer> => {
  const local = await startLocalTlsServer(t, { requestCert: true, rejectUnauthorized: true, ca: roots, ...options })
  local.server.on('request', (request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ authorized: (request.socket as TLSSocket).authorized }))
  })
  return local
}

const ticketsOn: ServerOptions = { secureOptions: 0 }
const tls12 = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const

test('a listener with tickets resumes, and takes an expired certificate for a good one', async (t) => {
  const { target } = await listener(t, ticketsOn)
  const identity = identityFor(2_000)
  const first = await openTlsConnection(t, target, identity)
  assert.deepEqual((await first.call('GET', '/')).body, { authorized: true })
  await eventually('the certificate to expire', () => Date.now() > identity.notAfterMs)

  // By TLS 1.3 the client learns of its refusal only when it reads.
  const fresh = await openTlsConnection(t, target, identity)
  await assert.rejects(fresh.call('GET', '/'), 'a new handshake with it is refused')
  const resumed = await openTlsConnection(t, target, identity, { session: first.sessions()[0] })
  assert.equal(resumed.reused, true)
  assert.deepEqual((await resumed.call('GET', '/')).body, { authorized: true })
})

test('a listener without tickets gives a client nothing it could resume with', async (t) => {
  const { target } = await listener(t, {})
  const identity = identityFor(60_000)
  const first = await openTlsConnection(t, target, identity)
  assert.deepEqual((await first.call('GET', '/')).body, { authorized: true })
  for (const session of first.sessions()) {
    assert.equal((await openTlsConnection(t, target, identity, { session })).reused, false)
  }
})

test('a listener whose certificate is replaced without its TLS options resumes again, and takes TLS 1.2', async (t) => {
  const { target, server } = await listener(t, {})
  const key = generateKey('p256')
  const order = nodeOrder(key, { issuedAtMs: Date.now(), usage: 'server', ipSans: ['127.0.0.1'] })
  const cert = chainOf(leafSpec(order, ca.issuing.certificate, serial()))
  await assert.rejects(openTlsConnection(t, target, identityFor(60_000), tls12), /protocol version/)

  server.setSecureContext({ key: key.pkcs8Pem(), cert, ca: roots })
  const renewed = { ...target, roots }
  const first = await openTlsConnection(t, renewed, identityFor(60_000))
  await eventually('a ticket', () => first.sessions().length > 1)
  const again = await openTlsConnection(t, renewed, identityFor(60_000), { session: first.sessions()[0] })
  assert.equal(again.reused, true)
  const old = await openTlsConnection(t, renewed, identityFor(60_000), tls12)
  assert.equal(old.protocol, 'TLSv1.2')
})
