import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hasDuplicateKeys } from './strict-json.ts'

const duplicate = (text: string): boolean => hasDuplicateKeys(text, JSON.parse(text))

test('a key that is named twice is found, at any depth and however it is written', () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"b":{"c":1,"c":2}}',
    '[{"x":[{"a":null,"a":null}]}]',
    '{"a":1,"\\u0061":2}',
    '{"1":0,"2":0,"1":0}',
  ])
    assert.equal(duplicate(text), true, text)
})

test('no JSON without a key twice is refused', () => {
  for (const text of ['{"a:":"b:\\":","c":{"a":1}}', '[":",{"a":1},{"a":1}]', '"::"', '3', 'null', '{}'])
    assert.equal(duplicate(text), false, text)
  fc.assert(fc.property(fc.json(), (text) => !duplicate(text)))
})
