import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifyIssuedChain } from '#pki/verify-chain.ts'
import { systemRandom } from '#platform/random.ts'
import { isCredentialDue, makeRenewalCredential, makeRenewalRoot } from './renewal-credential.ts'

const day = 86_400_000
const nowMs = Date.UTC(2026, 5, 1)
const making = { domain: 'example.test', nowMs, random: systemRandom }

test('a credential is for clients, hangs under its root alone, and has a key of its own', () => {
  const root = makeRenewalRoot(making)
  const [one, other] = [makeRenewalCredential(root, making), makeRenewalCredential(root, making)]
  assert.notDeepEqual(one.key.spki, other.key.spki)
  const { certificate } = one
  assert.deepEqual(
    [certificate.ca, certificate.keyUsage, certificate.extendedKeyUsage],
    [false, ['digitalSignature'], ['clientAuth']],
  )
  const chain = [certificate.der]
  const under = (der: Uint8Array) => verifyIssuedChain({ chain, roots: [der], purposes: ['clientAuth'], nowMs }).kind
  assert.equal(under(root.certificate.der), 'trusted')
  assert.equal(under(makeRenewalRoot(making).certificate.der), 'untrusted')
  // No CA can hang under it.
  assert.equal(root.certificate.pathLen, 0)
})

test('a credential is replaced a year before its end, and while the longest leaf still fits', () => {
  const { certificate } = makeRenewalCredential(makeRenewalRoot(making), making)
  assert.ok(certificate.notAfterMs > nowMs + 5 * 365 * day - 60_000)
  const leftMs = (left: number): number => certificate.notAfterMs - left
  assert.equal(isCredentialDue(certificate, day, nowMs), false)
  assert.equal(isCredentialDue(certificate, day, leftMs(366 * day)), false)
  assert.equal(isCredentialDue(certificate, day, leftMs(364 * day)), true)
  assert.equal(isCredentialDue(certificate, 400 * day, leftMs(801 * day)), false)
  assert.equal(isCredentialDue(certificate, 400 * day, leftMs(799 * day)), true)
})

test('a credential never outlives its root', () => {
  const root = makeRenewalRoot(making)
  const late = { ...making, nowMs: root.certificate.notAfterMs - day }
  assert.equal(makeRenewalCredential(root, late).certificate.notAfterMs, root.certificate.notAfterMs)
})
