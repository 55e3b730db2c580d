import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serialHex } from '#pki/certificate.ts'
import { newSerial } from './ca-signer.ts'

test('a serial number has all of its digits, as OpenSSL prints them', () => {
  for (const byte of [0, 0x0a, 0x7f, 0xff]) {
    const random = { bytes: (count: number) => Buffer.alloc(count, byte) }
    assert.equal(serialHex(newSerial(random)).length, 32)
  }
})
