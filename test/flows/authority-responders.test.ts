// Who answers for an issuing CA by OCSP, on a real store and with its keys where that store has them.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { certificateKey } from '#domain/core/certificate.ts'
import { entry } from '#domain/core/change.ts'
import { generateKey, keyHash } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import { openKeyCustody } from '#plane/keys/key-custody.ts'
import { dropEndedResponders, findResponder } from '#plane/authority/responder.ts'
import { findSealingKey } from '#plane/keys/sealing-key.ts'
import { systemRandom } from '#platform/random.ts'
import { day, leafOrder, operator, setUpWithFiles, type Setup } from './authority-setup.ts'

const custodyOf = ({ folder }: Setup) =>
  openKeyCustody(
    path.join(folder, 'keys'),
    findSealingKey({ dataFolder: folder, keyFile: null, credentialsFolder: null }, systemRandom),
  )

const responderFiles = ({ folder }: Setup): string[] =>
  fs.readdirSync(path.join(folder, 'keys')).filter((name) => name.startsWith('responder.'))

/** As a flow would, so that the store knows of it. */
const recordLeaf = async (setup: Setup, issued: Awaited<ReturnType<Awaited<ReturnType<Setup['open']>>['sign']>>) => {
  const value = { ...issued, subject: { kind: 'node', node: 'gpu-001', epoch: 1 }, renews: null } as const
  await setup.store.commit({
    reads: [{ row: 'certificate', key: certificateKey(issued.issuer, issued.serial), version: 0 }],
    writes: [{ put: 'certificate', value }],
    entries: [entry(operator, setup.clock.nowMs(), 'ca.requested', {}, {})],
  })
}

for (const issuerKey of ['file', 'memory'] as const) {
  test(`an issuer with its key in ${issuerKey} has a responder from the start, which lives as long as it does`, async (t) => {
    const setup = await setUpWithFiles(t, { issuerKey })
    const authority = await setup.open()
    const { issuer } = await authority.sign(leafOrder(setup.clock.nowMs()))
    const row = (await setup.store.get('issuer', issuer))?.value
    const identity = findResponder(custodyOf(setup), issuer)
    assert.ok(row !== undefined && identity !== null)
    const certificate = parseCertificate(identity.certificate)
    assert.ok(certificate.kind === 'certificate')
    assert.equal(certificate.notAfterMs, row.notAfterMs)
    assert.equal(certificate.authorityKeyId, issuer)
    assert.deepEqual(certificate.extendedKeyUsage, ['1.3.6.1.5.5.7.3.9'])
    assert.equal(certificate.ca, false)
    assert.notEqual(keyHash(certificateOf(row).spki, 'sha1'), keyHash(identity.key.spki, 'sha1'))
  })
}

test('an issuer from before there were responders gets one at the next start, and keeps it', async (t) => {
  const setup = await setUpWithFiles(t)
  await setup.open()
  const [file = ''] = responderFiles(setup)
  fs.rmSync(path.join(setup.folder, 'keys', file))
  await setup.open()
  const made = fs.readFileSync(path.join(setup.folder, 'keys', file))
  await setup.open()
  assert.deepEqual(fs.readFileSync(path.join(setup.folder, 'keys', file)), made)
})

test('a responder outlives the key of its issuer, and goes once the last certificate of that is forgotten', async (t) => {
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  const leaf = await authority.sign(leafOrder(setup.clock.nowMs(), day))
  await recordLeaf(setup, leaf)
  await authority.rotate(operator)
  const drop = () => dropEndedResponders({ custody: custodyOf(setup), store: setup.store, nowMs: setup.clock.nowMs() })
  await drop()
  assert.equal(responderFiles(setup).length, 2, 'its leaf can still be asked about')
  assert.equal(setup.keyFiles().filter((role) => role === 'issuing').length, 1)

  // The certificate of the plane itself is from it, too.
  setup.clock.advance(125 * day)
  await setup.store.forget(setup.clock.nowMs())
  await drop()
  assert.equal(responderFiles(setup).length, 1)
  assert.equal(findResponder(custodyOf(setup), leaf.issuer), null)
})

test('what is signed says where its status can be asked for, and an issuer in memory names no list', async (t) => {
  const statusUrl = 'http://status.example.test'
  for (const issuerKey of ['file', 'memory'] as const) {
    const setup = await setUpWithFiles(t, { issuerKey })
    const authority = await setup.open({ statusUrl })
    const order = { ...leafOrder(setup.clock.nowMs()), publicKey: generateKey('p256').spki }
    const { der, issuer } = await authority.sign(order)
    const text = Buffer.from(der, 'base64').toString('latin1')
    assert.ok(text.includes(`${statusUrl}/ocsp`))
    assert.equal(text.includes(`${statusUrl}/crl/${issuer}.crl`), issuerKey === 'file')
  }
})
