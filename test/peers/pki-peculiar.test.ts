// A second reader of X.509, in JavaScript: it has to agree with ours on everything we make.

import './pki-reflect-metadata.ts'
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { before, test } from 'node:test'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { parseCsr, makeCsr } from '#pki/csr.ts'
import { generateKey, keyId, type KeyType } from '#pki/keys.ts'
import { fromPem } from '#pki/pem.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import {
  type Held,
  hierarchy,
  leaf,
  nodeOrder,
  nowMs,
  profileOrder,
  serverOrder,
  workerOrder,
} from '../vectors/pki-hierarchy.ts'

// Loaded after the metadata it needs at import.
const x509 = await import('@peculiar/x509')

before(() => x509.cryptoProvider.set(webcrypto))

const keyTypes: readonly KeyType[] = ['ed25519', 'p256', 'p384']
const read = (held: Held) => new x509.X509Certificate(Uint8Array.from(held.certificate.der))

for (const type of keyTypes) {
  test(`@peculiar/x509 verifies every kind of certificate in a hierarchy of ${type} keys`, async () => {
    const { root, domainCa, issuing } = hierarchy(type, nowMs)
    const key = generateKey(type)
    const leaves = [nodeOrder(key, {}), workerOrder(key), serverOrder(key, {})].map((order) =>
      leaf(key, order, issuing),
    )
    const links = [
      [root, root],
      [domainCa, root],
      [issuing, domainCa],
      ...leaves.map((one) => [one, issuing] as const),
    ] as const
    for (const [held, issuer] of links) {
      const theirs = read(held)
      const publicKey = await read(issuer).publicKey.export(webcrypto)
      assert.equal(await theirs.verify({ publicKey, signatureOnly: true }), true, held.certificate.subject)
      sameReading(theirs, held.certificate)
    }
  })

  test(`@peculiar/x509 verifies our request of a ${type} key, and we read theirs`, async () => {
    const key = generateKey(type)
    const der = fromPem('CERTIFICATE REQUEST', makeCsr(key, 'node-1'))
    assert.ok(der !== null)
    const theirs = new x509.Pkcs10CertificateRequest(Uint8Array.from(der))
    assert.equal(await theirs.verify(), true)
    assert.equal(theirs.subject, 'CN=node-1')

    const algorithm = algorithms[type]
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    const made = await x509.Pkcs10CertificateRequestGenerator.create({
      name: 'CN=whoever, O=example',
      keys,
      signingAlgorithm: algorithm,
      extensions: [new x509.BasicConstraintsExtension(true, 3, true)],
    })
    const csr = parseCsr(made.toString('pem'))
    assert.ok(csr.kind === 'csr', JSON.stringify(csr))
    assert.equal(csr.keyType, type)
  })
}

for (const profile of shippedProfiles) {
  test(`@peculiar/x509 verifies a node certificate of profile ${profile.name}, of every key type it allows`, async () => {
    const { issuing } = hierarchy('p256', nowMs)
    const publicKey = await read(issuing).publicKey.export(webcrypto)
    for (const type of profile.certificate.keyTypes) {
      const key = generateKey(type)
      const node = leaf(key, profileOrder(profile, key), issuing)
      const theirs = read(node)
      assert.equal(await theirs.verify({ publicKey, signatureOnly: true }), true)
      sameReading(theirs, node.certificate)
      assert.equal(theirs.notAfter.getTime(), nowMs + profile.certificate.lifetimeMs)
      assert.deepEqual([...(theirs.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? [])], ['1.3.6.1.5.5.7.3.2'])
      assert.equal(theirs.getExtension(x509.KeyUsagesExtension)?.usages, x509.KeyUsageFlags.digitalSignature)
    }
  })
}

const algorithms = {
  ed25519: { name: 'Ed25519', namedCurve: 'Ed25519', hash: 'SHA-512' },
  p256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  p384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
}

const sameReading = (theirs: InstanceType<typeof x509.X509Certificate>, ours: ParsedCertificate): void => {
  assert.equal(theirs.serialNumber.replace(/^0+/, ''), ours.serial)
  assert.equal(theirs.notBefore.getTime(), ours.notBeforeMs)
  assert.equal(theirs.notAfter.getTime(), ours.notAfterMs)
  assert.equal(theirs.subject, ours.subject)
  const constraints = theirs.getExtension(x509.BasicConstraintsExtension)
  assert.equal(constraints?.ca, ours.ca)
  assert.equal(constraints?.pathLength ?? null, ours.pathLen)
  assert.equal(theirs.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId, ours.subjectKeyId)
  assert.equal(ours.subjectKeyId, keyId(ours.spki))
  assert.equal(theirs.getExtension(x509.AuthorityKeyIdentifierExtension)?.keyId, ours.authorityKeyId)
  const names = theirs.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON() ?? []
  const of = (kind: string): string[] => names.filter((name) => name.type === kind).map((name) => String(name.value))
  assert.deepEqual(of('dns'), ours.dnsNames)
  assert.deepEqual(of('url'), ours.uris)
  assert.equal(of('ip').length, ours.ips.length)
}
