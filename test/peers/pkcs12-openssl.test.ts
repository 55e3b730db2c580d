// OpenSSL opens our PKCS#12 files, and finds in them what went in.

import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import * as tls from 'node:tls'
import { test } from 'node:test'
import { generateKey, type KeyType } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { buildPkcs12 } from '#pki/pkcs12.ts'
import { systemRandom } from '#platform/random.ts'
import { hierarchy, leaf, nodeOrder, nowMs } from '../vectors/pki-hierarchy.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const types: readonly KeyType[] = ['p256', 'p384', 'ed25519']

test('OpenSSL opens a bundle with its password, checks its MAC, and finds the key and the chain in it', (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const { issuing, domainCa } = hierarchy('p256', nowMs)
  const file = path.join(tempFolder(t), 'bundle.p12')
  const read = (password: string, ...args: string[]) =>
    spawnSync(openssl, ['pkcs12', '-in', file, '-passin', 'stdin', ...args], { input: password, encoding: 'utf8' })
  for (const type of types) {
    const key = generateKey(type)
    const { certificate } = leaf(key, nodeOrder(key, {}), issuing)
    const pkcs8 = fromPem('PRIVATE KEY', key.pkcs8Pem())
    assert.ok(pkcs8 !== null)
    const chain = [certificate.der, issuing.certificate.der, domainCa.certificate.der]
    const bundle = buildPkcs12({ key: pkcs8, spki: key.spki, chain, name: 'web', password: 'changeit' }, (count) =>
      systemRandom.bytes(count),
    )
    fs.writeFileSync(file, bundle)

    const everything = read('changeit', '-info', '-nodes')
    assert.equal(everything.status, 0, everything.stderr)
    assert.match(everything.stderr, /MAC: sha256, Iteration 10000/)
    assert.match(everything.stderr, /PBES2, PBKDF2, AES-256-CBC, Iteration 10000, PRF hmacWithSHA256/)
    assert.match(everything.stdout, /friendlyName: web/)
    for (const der of chain) assert.ok(everything.stdout.includes(toPem('CERTIFICATE', der)), type)
    const found = /-----BEGIN PRIVATE KEY-----[^]+-----END PRIVATE KEY-----\n/.exec(everything.stdout)?.[0] ?? ''
    assert.ok(createPrivateKey(found).equals(createPrivateKey(key.pkcs8Pem())), type)
    const own = read('changeit', '-clcerts', '-nokeys')
    assert.equal(own.stdout.match(/BEGIN CERTIFICATE/g)?.length, 1, 'the leaf alone belongs to the key')

    assert.notEqual(read('other', '-noout').status, 0)
    // Throws where key and certificate do not fit.
    tls.createSecureContext({ pfx: Buffer.from(bundle), passphrase: 'changeit' })
  }
})
