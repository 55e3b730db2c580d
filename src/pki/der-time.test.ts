import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readDer } from './der.ts'
import { readTime, time, wholeSecondMs } from './der-time.ts'
import { encode } from './der-writer.ts'

test('every second from 1970 to 9999 is read back as it was written', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799 }), (seconds) => {
      assert.equal(readDer(encode(time(seconds * 1000)), readTime), seconds * 1000)
    }),
  )
})

test('years have two digits until 2049 and four from 2050 on', () => {
  const text = (ms: number): string => Buffer.from(encode(time(ms)).subarray(2)).toString()
  assert.equal(text(Date.UTC(2049, 11, 31, 23, 59, 59)), '491231235959Z')
  assert.equal(text(Date.UTC(2050, 0, 1)), '20500101000000Z')
  assert.equal(text(wholeSecondMs(999)), '700101000000Z')
})

test('a time no certificate can say is a bug', () => {
  for (const ms of [-1, Number.NaN, Infinity, 253_402_300_800_000]) assert.throws(() => time(ms), RangeError)
})
