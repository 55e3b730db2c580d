import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted, durationWords } from './in-words.ts'

test('a duration is said in at most two units, rounded down', () => {
  const said = [999, 1000, 61_000, 3_600_000, 90_061_000, 86_400_000 * 3].map(durationWords)
  assert.deepEqual(said, ['less than 1 s', '1 s', '1 min 1 s', '1 h', '1 d 1 h', '3 d'])
})

test('one of a thing is said without a plural, none and many with it', () => {
  assert.deepEqual(
    [0, 1, 2].map((count) => counted(count, 'node')),
    ['0 nodes', '1 node', '2 nodes'],
  )
  assert.deepEqual(
    [1, 2].map((count) => counted(count, 'entry', 'entries')),
    ['1 entry', '2 entries'],
  )
})
