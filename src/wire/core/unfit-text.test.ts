import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unfitText } from './strict-json.ts'

test('U+0000 and half of a surrogate pair are found at any depth, in values and in keys', () => {
  assert.equal(unfitText('a\u0000'), '')
  assert.equal(unfitText({ hardware: { macs: ['x', '\ud800'] } }), '/hardware/macs/1')
  assert.equal(unfitText({ tags: [{ 'a\udc00': 1 }] }), '/tags/0')
  assert.equal(unfitText({ name: 'é 😀 \u0001', count: 1, none: null, no: undefined }), null)
  assert.equal(unfitText(null), null)
})
