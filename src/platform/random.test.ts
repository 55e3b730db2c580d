import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sortableId, systemRandom, type Random } from './random.ts'

test('random bytes never repeat, however they are drawn', () => {
  const seen = new Set<string>()
  for (let i = 0; i < 5000; i++) seen.add(systemRandom.bytes(16).toString('hex'))
  assert.equal(seen.size, 5000)
  assert.equal(systemRandom.bytes(4000).length, 4000)
})

test('drawn bytes do not change when others are drawn after them', () => {
  const first = systemRandom.bytes(32)
  const copy = Buffer.from(first)
  for (let i = 0; i < 1000; i++) systemRandom.bytes(32)
  assert.deepEqual(first, copy)
})

test('sortable ids have 26 characters, sort by time and carry all random bits', () => {
  const ones: Random = { bytes: (count) => Buffer.alloc(count, 0xff), unit: () => 0 }
  const zeros: Random = { bytes: (count) => Buffer.alloc(count, 0), unit: () => 0 }
  assert.equal(sortableId(0, zeros), '0'.repeat(26))
  assert.equal(sortableId(2 ** 48 - 1, ones), '7' + 'Z'.repeat(25))
  assert.ok(sortableId(1_700_000_000_000, ones) < sortableId(1_700_000_000_001, zeros))
})
