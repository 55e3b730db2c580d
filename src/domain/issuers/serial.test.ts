import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { colonSerial, decimalSerial, serialBytes, serialOf, serialOfColons, serialOfDecimal } from './serial.ts'

const randomBytes = fc.uint8Array({ minLength: serialBytes, maxLength: serialBytes })

test('a serial is positive, has at least 64 random bits and no leading zero', () => {
  fc.assert(
    fc.property(randomBytes, (bytes) => {
      const serial = serialOf(bytes)
      assert.match(serial, /^[1-7][0-9a-f]{31}$/)
      // All but the four highest bits come from the random bytes.
      assert.equal(serial.slice(1), Buffer.from(bytes).toString('hex').slice(1))
    }),
  )
})

test('a serial is made of as many bytes as it has', () => {
  assert.throws(() => serialOf(new Uint8Array(8)))
})

test('a serial is read back from each spelling', () => {
  fc.assert(
    fc.property(randomBytes, (bytes) => {
      const serial = serialOf(bytes)
      assert.equal(serialOfDecimal(decimalSerial(serial)), serial)
      assert.equal(serialOfColons(colonSerial(serial)), serial)
    }),
  )
})

test('a serial that begins with a zero byte, or has an odd number of digits, is written as whole bytes', () => {
  assert.equal(colonSerial('abc'), '0a:bc')
  assert.equal(serialOfColons('00:0A-bc'), 'abc')
})

test('what is no serial is none', () => {
  for (const text of ['', '0', '-1', '0x10', '1.5', ' 1', '9'.repeat(60)])
    assert.equal(serialOfDecimal(text), null, text)
  for (const text of ['', '0', '00', 'zz', '1:2', '11:', '11:22;33', '11:'.repeat(30) + '11'])
    assert.equal(serialOfColons(text), null, text)
})
