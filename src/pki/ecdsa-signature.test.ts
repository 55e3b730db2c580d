import assert from 'node:assert/strict'
import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { test } from 'node:test'
import { derSignature } from './ecdsa-signature.ts'

test('what OpenSSL makes as r and s it verifies in DER, whatever their first bits', () => {
  for (const namedCurve of ['P-256', 'P-384']) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
    for (let round = 0; round < 64; round++) {
      const data = Buffer.from(`${namedCurve} ${round}`)
      const raw = sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' })
      assert.ok(verify('sha256', data, publicKey, derSignature(raw)))
    }
  }
})

test('numbers with zeros in front, and with their first bit set, are as short as DER has them', () => {
  assert.equal(Buffer.from(derSignature(Uint8Array.of(0, 1, 0, 0))).toString('hex'), '3006020101020100')
  assert.equal(Buffer.from(derSignature(Uint8Array.of(0x80, 0xff))).toString('hex'), '300802020080020200ff')
  for (const odd of [Uint8Array.of(), Uint8Array.of(1, 2, 3)]) assert.throws(() => derSignature(odd))
})
