import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalJson, type CanonicalValue } from './canonical-json.ts'

test('keys are sorted by code unit at every depth and nothing is spaced', () => {
  assert.equal(
    canonicalJson({ b: [1, { z: null, a: true }], a: 'x', 10: 0, 9: 0, é: 1, Z: 2 }),
    '{"10":0,"9":0,"Z":2,"a":"x","b":[1,{"a":true,"z":null}],"é":1}',
  )
})

test('the order in which a value was built does not show', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (record) => {
      const reversed = Object.fromEntries(Object.entries(record).reverse())
      assert.equal(canonicalJson(record as CanonicalValue), canonicalJson(reversed as CanonicalValue))
    }),
  )
})

test('what is written reads back as the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noNegativeZero: true } as object), (value) => {
      assert.deepEqual(JSON.parse(canonicalJson(value as CanonicalValue)), JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('a value without a canonical form is thrown out instead of changed', () => {
  for (const value of [NaN, Infinity, undefined, () => 1, 1n, { a: undefined }, [Symbol()]])
    assert.throws(() => canonicalJson(value as unknown as CanonicalValue), TypeError)
})
