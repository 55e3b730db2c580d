import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unfitText, hasDuplicateKeys } from './strict-json.ts'
import fc from 'fast-check'

test('U+0000 and half of a surrogate pair are found at any depth, in values and in keys', () => {
  assert.equal(unfitText('a\u0000'), '')
  assert.equal(unfitText({ hardware: { macs: ['x', '\ud800'] } }), '/hardware/macs/1')
  assert.equal(unfitText({ tags: [{ 'a\udc00': 1 }] }), '/tags/0')
  assert.equal(unfitText({ name: 'é 😀 \u0001', count: 1, none: null, no: undefined }), null)
  assert.equal(unfitText(null), null)
})

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
