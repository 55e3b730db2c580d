// What the built-in authority signs, and what a restart does to it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { planeMark } from '#domain/core/plane-mark.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { verifyServerChain } from '#pki/verify-chain.ts'
import { CaView } from '#wire/ca/ca-api.ts'
import { Value } from 'typebox/value'
import { withPeer } from '../peers/peer.ts'
import { day, leafOrder, longestProfileMs, opensslVerify, setUpWithFiles, startMs } from './authority-setup.ts'

test('OpenSSL accepts what the authority signs, with the key in a file and in memory', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  for (const wanted of [
    { issuerKey: 'file', rootPathLen: 2 },
    { issuerKey: 'file', rootPathLen: 1 },
    { issuerKey: 'memory', rootPathLen: 2 },
  ] as const) {
    const setup = await setUpWithFiles(t, wanted)
    const authority = await setup.open()
    const leaf = await authority.sign(leafOrder(startMs))
    assert.match(opensslVerify(t, openssl, authority, leaf, startMs), /: OK$/)
    assert.equal(authority.chainOf(leaf.issuer).length, wanted.issuerKey === 'memory' ? 2 : 1)
  }
})

test('the answer to an order says the same as the certificate', async (t) => {
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  const order = leafOrder(startMs, day)
  const leaf = await authority.sign(order)
  const parsed = parseCertificate(Buffer.from(leaf.der, 'base64'))
  assert.equal(parsed.kind, 'certificate')
  if (parsed.kind !== 'certificate') return
  assert.equal(leaf.serial, parsed.serial)
  assert.match(leaf.serial, /^[1-9a-f][0-9a-f]{25,31}$/)
  assert.equal(leaf.issuer, parsed.authorityKeyId)
  assert.equal(leaf.sha256, parsed.sha256)
  assert.equal(leaf.notAfterMs, parsed.notAfterMs)
  assert.equal(leaf.notAfterMs, startMs + day)
  assert.deepEqual(Buffer.from(parsed.spki), Buffer.from(order.publicKey))
  assert.deepEqual(parsed.uris, order.uriSans)
  assert.equal(leaf.order, order.id)
})

test('after a restart the same file key signs, and the same server certificate is presented', async (t) => {
  const setup = await setUpWithFiles(t)
  const before = await setup.open()
  const after = await setup.open()
  const [one, two] = [await before.sign(leafOrder(startMs)), await after.sign(leafOrder(startMs))]
  assert.equal(one.issuer, two.issuer)
  assert.equal(before.serverIdentity().chainPem, after.serverIdentity().chainPem)
  assert.equal((await setup.journal('server_certificate.issued')).length, 1)
})

test('a restart with keys in memory makes a new issuer, and leaves of the earlier ones stay verifiable', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const setup = await setUpWithFiles(t, { issuerKey: 'memory' })
  const leaves = []
  for (let start = 0; start < 3; start++) {
    leaves.push(await (await setup.open()).sign(leafOrder(setup.clock.nowMs())))
    setup.clock.advance(day)
  }
  assert.equal(new Set(leaves.map(({ issuer }) => issuer)).size, 3)
  const authority = await setup.open()
  for (const leaf of leaves) {
    assert.match(opensslVerify(t, openssl, authority, leaf, setup.clock.nowMs()), /: OK$/)
  }
  assert.equal((await setup.journal('ca.rotated')).length, 4)
  assert.equal((await setup.journal('ca.retired')).length, 3)
})

test('a key in memory is never written', async (t) => {
  const setup = await setUpWithFiles(t, { issuerKey: 'memory' })
  await setup.open()
  assert.deepEqual(setup.keyFiles(), ['domain-ca', 'root', 'server'])
})

test('a memory issuer lives as long as the longest leaf and a week more', async (t) => {
  const setup = await setUpWithFiles(t, { issuerKey: 'memory' })
  const authority = await setup.open()
  const signing = authority.view().authorities.find(({ custody }) => custody === 'memory')
  assert.equal(signing?.not_after, new Date(startMs + longestProfileMs + 7 * day).toISOString())
})

test('an agent that knows only the fingerprint of the root accepts the presented chain', async (t) => {
  for (const issuerKey of ['file', 'memory'] as const) {
    const setup = await setUpWithFiles(t, { issuerKey })
    const authority = await setup.open()
    const chain = allFromPem('CERTIFICATE', authority.serverIdentity().chainPem) ?? []
    for (const host of ['localhost', '127.0.0.1', '::1']) {
      const anchor = { rootFingerprint: authority.rootFingerprint() }
      const mark = { uri: planeMark('test.example'), required: true }
      assert.equal(verifyServerChain({ chain, anchor, mark, host, nowMs: startMs }).kind, 'trusted')
    }
  }
})

test('OpenSSL accepts the server certificate for its host name', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const setup = await setUpWithFiles(t)
  const authority = await setup.open()
  const [roots, chain] = ['roots.pem', 'chain.pem'].map((name) => path.join(setup.folder, name)) as [string, string]
  fs.writeFileSync(roots, authority.roots().join(''))
  fs.writeFileSync(chain, authority.serverIdentity().chainPem)
  const at = String(startMs / 1000)
  const judge = ['verify', '-x509_strict', '-purpose', 'sslserver', '-verify_hostname', 'localhost', '-attime', at]
  const verdict = execFileSync(openssl, [...judge, '-CAfile', roots, '-untrusted', chain, chain], { encoding: 'utf8' })
  assert.match(verdict, /: OK\s*$/)
  const shown = execFileSync(openssl, ['x509', '-in', chain, '-noout', '-subject', '-text'], { encoding: 'utf8' })
  assert.match(shown, /OU ?= ?control-plane/)
  assert.match(shown, /prime256v1/)
})

test('a leaf is cut to the end of its issuer only where no issuer could give more', async (t) => {
  const setup = await setUpWithFiles(t, { intermediateLifetimeMs: 100 * day })
  const authority = await setup.open()
  assert.ok(authority.longestLeafMs() > 97 * day && authority.longestLeafMs() < 100 * day)
  const first = await authority.sign(leafOrder(startMs))
  setup.clock.advance(20 * day)
  const fits = await authority.sign(leafOrder(setup.clock.nowMs()))
  assert.equal(fits.notAfterMs, setup.clock.nowMs() + longestProfileMs)
  assert.notEqual(fits.issuer, first.issuer)
  const cut = await authority.sign(leafOrder(setup.clock.nowMs(), 200 * day))
  assert.equal(cut.notAfterMs, setup.clock.nowMs() + 100 * day)
  assert.equal(cut.issuer, fits.issuer)
})

test('several orders that need a new issuer at once get one', async (t) => {
  const setup = await setUpWithFiles(t, { intermediateLifetimeMs: 100 * day })
  const authority = await setup.open()
  setup.clock.advance(20 * day)
  const leaves = await Promise.all([1, 2, 3, 4].map(() => authority.sign(leafOrder(setup.clock.nowMs()))))
  assert.equal(new Set(leaves.map(({ issuer }) => issuer)).size, 1)
  assert.equal((await setup.journal('ca.rotated')).length, 1)
})

test('what operators are shown fits its schema, and names what signs', async (t) => {
  for (const issuerKey of ['file', 'memory'] as const) {
    const setup = await setUpWithFiles(t, { issuerKey })
    await setup.open()
    const authority = await setup.open()
    const view = authority.view()
    assert.deepEqual([...Value.Errors(CaView, view)], [])
    const { issuer } = await authority.sign(leafOrder(startMs))
    const signing = view.authorities.filter((one) => one.signing).map(({ role }) => role)
    assert.deepEqual(signing.sort(), issuerKey === 'file' ? ['issuing', 'root'] : ['domain-ca', 'issuing', 'root'])
    assert.ok(view.authorities.some((one) => one.id === issuer && one.signing))
    assert.equal(view.root_fingerprint, authority.rootFingerprint())
  }
})
