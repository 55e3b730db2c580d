import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serialHex } from '#pki/certificate.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { isSignedBy, parseCertificate } from '#pki/parse-certificate.ts'
import type { Signer } from '#pki/signer.ts'
import { seededRandom } from '../../../test/fakes/seeded-random.ts'
import { day, nodeOrder, nowMs } from '../../../test/vectors/pki-hierarchy.ts'
import { leafSerial, newSerial, signLeaf, type CaSigner } from './ca-signer.ts'
import { makeIntermediate, makeRoot } from './make-issuer.ts'

test('a serial number has all of its digits, as OpenSSL prints them', () => {
  for (const byte of [0, 0x0a, 0x7f, 0xff]) {
    const random = { bytes: (count: number) => Buffer.alloc(count, byte) }
    assert.equal(serialHex(newSerial(random)).length, 32)
    for (const at of [0, nowMs, 2 ** 44 - 1]) assert.equal(serialHex(leafSerial(at, random)).length, 32)
  }
})

test('serial numbers of leaves sort by the time of their issue, and those of one millisecond differ', () => {
  const times = [0, 1, 2 ** 32 - 1, 2 ** 32, nowMs, nowMs + 1, 2 ** 44 - 1]
  const serials = times.map((at) => serialHex(leafSerial(at, random)))
  assert.deepEqual(serials.toSorted(), serials)
  const together = Array.from({ length: 1000 }, () => serialHex(leafSerial(nowMs, random)))
  assert.equal(new Set(together).size, 1000)
  assert.equal(new Set(together.map((serial) => serial.slice(0, 12))).size, 1)
})

const random = seededRandom(17)
const making = { domain: 'example.test', custody: 'file', lifetimeMs: 300 * day, nowMs: nowMs - day, random } as const
const root = makeRoot({ ...making, pathLen: 1 })
const order = nodeOrder(generateKey('p256'), {})

/** As a token or a key service: what it signs is there some turns of the loop later. */
const elsewhere = (authority: CaSigner<PrivateKey>): CaSigner => {
  const { type, spki, sign } = authority.key
  const key: Signer = { type, spki, sign: (data) => new Promise((resolve) => setImmediate(() => resolve(sign(data)))) }
  return { ...authority, key }
}

test('an authority whose key is here signs a leaf at once', () => {
  const issued = signLeaf(makeIntermediate('issuing', root, making), order, random)
  assert.equal(issued.order, order.id)
})

test('an authority whose key is elsewhere signs the CA below it, and that one leaves', async () => {
  const below = await makeIntermediate('issuing', elsewhere(root), making)
  assert.ok(isSignedBy(below.certificate, root.certificate))
  const issued = await signLeaf(elsewhere(below), order, random)
  const leaf = parseCertificate(Buffer.from(issued.der, 'base64'))
  assert.ok(leaf.kind === 'certificate' && isSignedBy(leaf, below.certificate))
  assert.deepEqual([issued.issuer, issued.order], [below.row.id, order.id])
})
