import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cursorAt, cursorOf, isCursor, longestCursor, readCursor } from './journal-cursor.ts'

const sequence = fc.integer({ min: 0, max: 1e14 })
const chain = fc.stringMatching(/^[0-9A-Z]{26}$/)

test('a cursor comes back as the places it was made of, however many chains there are', () => {
  fc.assert(
    fc.property(fc.uniqueArray(chain, { minLength: 1, maxLength: 100 }), sequence, (chains, first) => {
      const places = new Map(chains.map((name, at) => [name, first + at]))
      const cursor = cursorAt(places)
      assert.deepEqual(readCursor(cursor), places)
      assert(cursor.length <= longestCursor)
    }),
  )
})

test('a cursor of a journal with one chain reads as it always did', () => {
  const old = Buffer.from('01JCHAIN:7', 'utf8').toString('base64url')
  assert.equal(cursorOf('01JCHAIN', 7), old)
  assert.deepEqual(readCursor(old), new Map([['01JCHAIN', 7]]))
})

test('the order in which chains became known makes no difference', () => {
  const [one, other] = [['A', 1] as const, ['B', 2] as const]
  assert.equal(cursorAt(new Map([one, other])), cursorAt(new Map([other, one])))
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
    cursorOf('c:1,c', 1),
    cursorOf('c:1,', 1),
    'A'.repeat(longestCursor + 1),
  ])
    assert.equal(isCursor(text), false, text)
  fc.assert(fc.property(fc.string(), (text) => void readCursor(text)))
})
