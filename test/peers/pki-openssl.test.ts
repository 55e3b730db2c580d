// OpenSSL's command line judges everything we make, and we judge what it makes.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { generateKey, type KeyType, loadPrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { rootSpec } from '#pki/authority-certificates.ts'
import {
  authority,
  day,
  type Held,
  hierarchy,
  hold,
  issuingCa,
  leaf,
  nodeOrder,
  nowMs,
  profileOrder,
  serverOrder,
  workerOrder,
} from '../vectors/pki-hierarchy.ts'
import { withPeer } from './peer.ts'

const keyTypes: readonly KeyType[] = ['ed25519', 'p256', 'p384']
const nowSeconds = String(nowMs / 1000)
const url = { aiaUrl: 'http://pki.example.test/issuer.der', cdpUrl: 'http://pki.example.test/list.crl' }

const run = (openssl: string, args: readonly string[], input: string): string => {
  const done = spawnSync(openssl, args, { input, encoding: 'utf8' })
  assert.equal(done.status, 0, `openssl ${args.join(' ')}\n${done.stdout}${done.stderr}`)
  return done.stdout + done.stderr
}

const pem = (...held: Held[]): string => held.map((one) => toPem('CERTIFICATE', one.certificate.der)).join('')

const folder = (t: TestContext): string => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-pki-'))
  t.after(() => fs.rmSync(made, { recursive: true }))
  return made
}

const verify = (t: TestContext, openssl: string, chain: readonly Held[], options: readonly string[]): string => {
  const at = folder(t)
  const [first, ...rest] = chain
  const root = rest.at(-1) ?? first
  assert.ok(first !== undefined && root !== undefined)
  fs.writeFileSync(path.join(at, 'root.pem'), pem(root))
  fs.writeFileSync(path.join(at, 'between.pem'), pem(...rest.slice(0, -1)))
  fs.writeFileSync(path.join(at, 'leaf.pem'), pem(first))
  const files = ['-CAfile', path.join(at, 'root.pem'), '-no-CApath', '-no-CAstore']
  const between = rest.length > 1 ? ['-untrusted', path.join(at, 'between.pem')] : []
  const strict = ['-x509_strict', '-check_ss_sig', '-policy_check', '-attime', nowSeconds]
  return run(openssl, ['verify', ...strict, ...files, ...between, ...options, path.join(at, 'leaf.pem')], '')
}

for (const type of keyTypes) {
  test(`OpenSSL trusts every kind of certificate in a hierarchy of ${type} keys`, (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const { root, domainCa, issuing } = hierarchy(type, nowMs)
    const above = [issuing, domainCa, root]
    const key = generateKey(type)
    verify(t, openssl, [root], ['-purpose', 'any'])
    verify(t, openssl, [domainCa, root], ['-purpose', 'any'])
    verify(t, openssl, above, ['-purpose', 'any'])
    verify(t, openssl, [leaf(key, nodeOrder(key, {}), issuing), ...above], ['-purpose', 'sslclient'])
    verify(t, openssl, [leaf(key, nodeOrder(key, url), issuing), ...above], ['-purpose', 'sslclient'])
    verify(t, openssl, [leaf(key, nodeOrder(key, { uriSans: [] }), issuing), ...above], ['-purpose', 'sslclient'])
    verify(t, openssl, [leaf(key, workerOrder(key), issuing), ...above], ['-purpose', 'sslclient'])
    const server = [leaf(key, serverOrder(key, {}), issuing), ...above]
    for (const name of ['plane.example.test', 'a.internal.example.test', 'localhost']) {
      verify(t, openssl, server, ['-purpose', 'sslserver', '-verify_hostname', name])
    }
    for (const ip of ['127.0.0.1', '::1']) verify(t, openssl, server, ['-purpose', 'sslserver', '-verify_ip', ip])
  })

  test(`OpenSSL verifies our requests of ${type} keys and reads our private keys`, (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const key = generateKey(type)
    const text = run(openssl, ['req', '-verify', '-noout', '-text'], makeCsr(key, 'node-1'))
    assert.match(text, /verify OK/)
    assert.match(text, /Subject: CN ?= ?node-1/)
    const pub = run(openssl, ['pkey', '-pubout'], key.pkcs8Pem())
    assert.equal(pub, toPem('PUBLIC KEY', key.spki))
  })

  test(`a request of a ${type} key made by OpenSSL parses, and so does its private key`, (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const at = path.join(folder(t), 'key.pem')
    const options = type === 'ed25519' ? [] : ['-pkeyopt', `ec_paramgen_curve:${type === 'p256' ? 'P-256' : 'P-384'}`]
    run(openssl, ['genpkey', '-algorithm', type === 'ed25519' ? 'ed25519' : 'EC', '-out', at, ...options], '')
    const key = loadPrivateKey(fs.readFileSync(at, 'utf8'))
    const digests = type === 'ed25519' ? [[]] : [[], ['-sha256'], ['-sha384'], ['-sha512']]
    const subject = ['-subj', '/C=CH/O=Exämple/CN=whoever/emailAddress=a@example.test', '-utf8']
    const names = ['-addext', 'subjectAltName=DNS:evil.example.test', '-addext', 'basicConstraints=critical,CA:TRUE']
    for (const digest of digests) {
      const csr = parseCsr(run(openssl, ['req', '-new', '-key', at, ...digest, ...subject, ...names], ''))
      assert.ok(csr.kind === 'csr', JSON.stringify(csr))
      assert.equal(csr.keyType, type)
      assert.deepEqual(Buffer.from(csr.spki), Buffer.from(key.spki))
    }
  })
}

for (const profile of shippedProfiles) {
  test(`OpenSSL trusts a node certificate of profile ${profile.name}, of every key type it allows`, (t) => {
    const openssl = withPeer(t, 'openssl')
    if (openssl === null) return
    const { root, domainCa, issuing } = hierarchy('p256', nowMs)
    for (const type of profile.certificate.keyTypes) {
      const key = generateKey(type)
      const node = leaf(key, profileOrder(profile, key), issuing)
      verify(t, openssl, [node, issuing, domainCa, root], ['-purpose', 'sslclient'])
    }
  })
}

test('OpenSSL reads a node certificate as the design describes it', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { issuing } = hierarchy('p256', nowMs)
  const key = generateKey('ed25519')
  const node = leaf(key, nodeOrder(key, url), issuing)
  const text = run(openssl, ['x509', '-noout', '-text', '-fingerprint', '-sha256'], pem(node))
  assert.match(text, /Version: 3/)
  assert.match(text, /Subject: CN ?= ?node-gpu-001, O ?= ?example\.test, OU ?= ?nodes/)
  assert.match(text, /Not Before: Jun {2}1 11:59:00 2026 GMT/)
  assert.match(text, /Not After : Jun {2}2 12:00:00 2026 GMT/)
  assert.match(text, /Key Usage: critical\s+Digital Signature\n/)
  assert.match(text, /Extended Key Usage: \s+TLS Web Client Authentication\n/)
  assert.match(text, /Basic Constraints: critical\s+CA:FALSE/)
  assert.match(text, /URI:spiffe:\/\/example\.test\/node\/gpu-001\n/)
  assert.match(text, /CA Issuers - URI:http:\/\/pki\.example\.test\/issuer\.der/)
  assert.match(text, /Full Name:\s+URI:http:\/\/pki\.example\.test\/list\.crl/)
  const printed = /Fingerprint=([0-9A-F:]+)/.exec(text)?.[1]
  assert.equal(printed?.replaceAll(':', '').toLowerCase(), node.certificate.sha256)
  const serial = run(openssl, ['x509', '-noout', '-serial'], pem(node))
  assert.equal(
    serial
      .trim()
      .replace(/^serial=0*/, '')
      .toLowerCase(),
    node.certificate.serial,
  )
})

test('OpenSSL reads the path lengths and key usages of our authorities', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { root, domainCa, issuing } = hierarchy('p384', nowMs)
  for (const [held, pathLen] of [
    [root, 2],
    [domainCa, 1],
    [issuing, 0],
  ] as const) {
    const text = run(openssl, ['x509', '-noout', '-text'], pem(held))
    assert.match(text, new RegExp(`Basic Constraints: critical\\s+CA:TRUE, pathlen:${pathLen}\\n`))
    assert.match(text, /Key Usage: critical\s+Certificate Sign, CRL Sign\n/)
  }
})

test('OpenSSL trusts a certificate without a subject, whose alternative names are then critical', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { root, domainCa, issuing } = hierarchy('p256', nowMs)
  const key = generateKey('p256')
  const nameless = leaf(key, nodeOrder(key, { subject: { cn: '', o: '', ou: '' } }), issuing)
  verify(t, openssl, [nameless, issuing, domainCa, root], ['-purpose', 'sslclient'])
  assert.match(run(openssl, ['x509', '-noout', '-text'], pem(nameless)), /Alternative Name: critical/)
})

test('OpenSSL trusts a root of path length 1, and dates beyond 2050', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const key = generateKey('p256')
  const root = hold(key, rootSpec({ ...authority(key, 30 * 365 * day, nowMs), pathLen: 1 }), key)
  const issuing = issuingCa('p256', root, nowMs)
  const leafKey = generateKey('p256')
  const node = leaf(leafKey, nodeOrder(leafKey, {}), issuing)
  verify(t, openssl, [node, issuing, root], ['-purpose', 'sslclient'])
  assert.match(run(openssl, ['x509', '-noout', '-enddate'], pem(root)), /notAfter=.* 2056 GMT/)
})

test('OpenSSL refuses a leaf that was changed after signing, so that its yes means something', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { root, domainCa, issuing } = hierarchy('p256', nowMs)
  const key = generateKey('p256')
  const node = leaf(key, nodeOrder(key, {}), issuing)
  const der = Uint8Array.from(node.certificate.der)
  der[der.length - 1] = (der.at(-1) ?? 0) ^ 1
  const forged = { key, certificate: { ...node.certificate, der } }
  assert.throws(() => verify(t, openssl, [forged, issuing, domainCa, root], ['-purpose', 'sslclient']))
})
