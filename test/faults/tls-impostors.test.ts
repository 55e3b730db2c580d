// Certificates that look right to TLS and are not the ones this plane gave out (ruling 9).

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test } from 'node:test'
import { rootSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { raw } from '#pki/der-writer.ts'
import { generateKey } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { openKeyCustody } from '#plane/keys/key-custody.ts'
import { findSealingKey } from '#plane/keys/sealing-key.ts'
import { systemRandom } from '#platform/random.ts'
import { activeNode } from '../process/active-node.ts'
import { nodeCall, type Identity, type NodeTarget } from '../process/node-call.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { authority, day } from '../vectors/pki-hierarchy.ts'
import { field, rewritten } from '../vectors/pki-rewrite-certificate.ts'

const plane = sharedPlane()

const certificatesIn = (pem: string): string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g) ?? []
const derOf = (pem: string): Uint8Array => fromPem('CERTIFICATE', pem) ?? assert.fail('not a certificate')
const pemOf = (...ders: Uint8Array[]): string => ders.map((der) => toPem('CERTIFICATE', der)).join('')

/** Refused by every address that needs a certificate; those that need none do not mind it. */
const isUnknown = async (target: NodeTarget, identity: Identity, id: string): Promise<void> => {
  const confirm = await nodeCall(target, identity, 'POST', `/v1/nodes/${id}/confirm`, {})
  assert.deepEqual([confirm.status, confirm.body.code], [401, 'CLIENT_CERT_UNKNOWN'])
  const channel = await openRawChannel(target, identity, id)
  assert.ok('status' in channel, 'a channel was opened')
  assert.deepEqual([channel.status, channel.body.code], [401, 'CLIENT_CERT_UNKNOWN'])
  assert.equal((await nodeCall(target, identity, 'GET', '/v1/bundle')).status, 200)
}

test('a certificate with the issuer name and serial of a real one but another key is unknown', async () => {
  const node = await activeNode(plane(), 'gpu-001')
  const [leafPem = '', ...abovePem] = certificatesIn(node.identity().chainPem)
  const mine = generateKey('p256')
  const forged = rewritten(derOf(leafPem), mine, (fields) => fields.with(field.spki, raw(mine.spki)))
  const self = { keyPem: mine.pkcs8Pem(), chainPem: pemOf(forged) }
  await isUnknown(node.target, self, 'gpu-001')

  const above = abovePem.map(derOf)
  await isUnknown(node.target, { ...self, chainPem: pemOf(forged, ...above) }, 'gpu-001')
  // The same, under an authority made for the purpose: every name, serial and key id as in the real one but for its key.
  const fakeAbove = above.map((der) => rewritten(der, mine, (fields) => fields.with(field.spki, raw(mine.spki))))
  await isUnknown(node.target, { ...self, chainPem: pemOf(forged, ...fakeAbove) }, 'gpu-001')
  assert.equal((await node.confirm()).status, 200, 'the real one goes on')
})

test('the certificate of a node of another domain is unknown, even where both domains have one name', async (t) => {
  const other = await startPlane(t)
  assert.equal(other.domain, plane().domain)
  const stranger = await activeNode(other, 'gpu-002')
  const target = await plane().target()
  await isUnknown(target, stranger.identity(), 'gpu-002')
  await activeNode(plane(), 'gpu-002')
  await isUnknown(target, stranger.identity(), 'gpu-002')
})

/** As an attacker would who has read the plane's data folder. */
const keysOf = (it: Plane, role: string): { key: string; pem: string } => {
  const places = { dataFolder: it.data, keyFile: null, credentialsFolder: null }
  const custody = openKeyCustody(path.join(it.data, 'keys'), findSealingKey(places, systemRandom))
  const name = custody.names().find((one) => one.role === role)
  const text = name === undefined ? null : custody.find(name)
  assert.ok(text !== null, `no key for ${role}`)
  const border = text.indexOf('-----BEGIN CERTIFICATE-----')
  return border === -1 ? { key: text, pem: '' } : { key: text.slice(0, border), pem: text.slice(border) }
}

test("the plane's own server certificate and its issuing CA are no nodes", async () => {
  const node = await activeNode(plane(), 'gpu-003')
  const [, ...above] = certificatesIn(node.identity().chainPem)
  const server = keysOf(plane(), 'server')
  await isUnknown(node.target, { keyPem: server.key, chainPem: server.pem + above.join('') }, 'gpu-003')
  await isUnknown(node.target, { keyPem: keysOf(plane(), 'issuing').key, chainPem: above.join('') }, 'gpu-003')
})

test('a certificate that was never issued here is unknown', async () => {
  const key = generateKey('ed25519')
  const alone = buildCertificate(rootSpec({ ...authority(key, day, Date.now()), pathLen: 2 }), key)
  await isUnknown(await plane().target(), { keyPem: key.pkcs8Pem(), chainPem: pemOf(alone) }, 'gpu-001')
})

test('a node authenticates as itself and as no other, and without a certificate not at all', async () => {
  const [a, b] = [await activeNode(plane(), 'gpu-004'), await activeNode(plane(), 'gpu-005')]
  const asOther = await nodeCall(a.target, a.identity(), 'POST', `/v1/nodes/${b.id()}/confirm`, {})
  assert.deepEqual([asOther.status, asOther.body.code], [403, 'IDENTITY_MISMATCH'])
  const nobody = await nodeCall(a.target, null, 'POST', `/v1/nodes/${b.id()}/confirm`, {})
  assert.deepEqual([nobody.status, nobody.body.code], [401, 'CLIENT_CERT_REQUIRED'])
})

test('TLS 1.2 is refused', async (t) => {
  const node = await activeNode(plane(), 'gpu-006')
  const old = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const
  await assert.rejects(openTlsConnection(t, node.target, node.identity(), old), /protocol version/)
})
