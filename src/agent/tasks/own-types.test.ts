import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundedOutput } from './own-types.ts'

test('a short output is its head alone, a longer one goes on in its tail, and of a long one the middle is left out', () => {
  assert.deepEqual(boundedOutput('short'), { head: 'short', tail: '', bytes: 5 })
  const longer = 'a'.repeat(8_192) + 'bc'
  assert.deepEqual(boundedOutput(longer), { head: 'a'.repeat(8_192), tail: 'bc', bytes: 8_194 })
  const long = `${'a'.repeat(10_000)}${'b'.repeat(10_000)}`
  assert.deepEqual(boundedOutput(long), { head: 'a'.repeat(8_192), tail: 'b'.repeat(8_192), bytes: 20_000 })
})
