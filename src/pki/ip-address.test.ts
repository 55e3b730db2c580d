import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { ipBytes, ipText } from './ip-address.ts'

test('every address survives the way to bytes and back, in the form a URL gives it', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (address) => {
      const bytes = ipBytes(address)
      assert.ok(bytes !== null, address)
      const text = ipText(bytes)
      assert.deepEqual(ipBytes(text), bytes)
      const url = new URL(`http://${address.includes(':') ? `[${address}]` : address}/`)
      assert.equal(text, url.hostname.replace(/^\[|\]$/g, ''))
    }),
    { numRuns: 2000 },
  )
})

test('what Node does not take for an address, we do not either', () => {
  const alphabet = fc.string({ unit: fc.constantFrom(...'0123456789abcf:.'), maxLength: 24 })
  fc.assert(
    fc.property(alphabet, (text) => assert.equal(ipBytes(text) !== null, isIP(text) !== 0, text)),
    { numRuns: 5000 },
  )
  for (const text of [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '::1%eth0',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7:8:9',
  ]) {
    assert.equal(ipBytes(text), null, text)
  }
})
