import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cursorOf, isCursor, readCursor } from './journal-cursor.ts'

test('a cursor comes back as the place it was made of', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e14 }), (sequence) => {
      assert.deepEqual(readCursor(cursorOf('01JCHAIN', sequence)), { chain: '01JCHAIN', sequence })
    }),
  )
})

test('any other text is not a cursor', () => {
  for (const text of [
    '',
    'x',
    'Og',
    '../../etc',
    cursorOf('c', 1.5),
    cursorOf('c', -1),
    cursorOf('a b', 1),
    'A'.repeat(500),
  ])
    assert.equal(isCursor(text), false, text)
  fc.assert(fc.property(fc.string(), (text) => void readCursor(text)))
})
