import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withdrawnWith } from './withdrawn-issuers.ts'

test('what was withdrawn once stays so, whoever has not heard of it', () => {
  assert.deepEqual(withdrawnWith(['a'], undefined), ['a'])
  assert.deepEqual(withdrawnWith(['a'], []), ['a'])
  assert.deepEqual(withdrawnWith(['a'], ['b', 'a']), ['b', 'a'])
})

test('not more are kept than there is room for, the latest first', () => {
  const many = Array.from({ length: 70 }, (_, at) => `k${at}`)
  assert.deepEqual(withdrawnWith(['old'], many), many.slice(0, 64))
})
