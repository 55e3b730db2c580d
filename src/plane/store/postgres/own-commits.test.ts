import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredEntry } from '#plane/store/contract/store.ts'
import { openOwnCommits } from './own-commits.ts'

const entry = (sequence: number, chain = 'C'): StoredEntry =>
  ({ entry: { chain, sequence }, hash: `hash-${sequence}` }) as unknown as StoredEntry

const start = { sequence: 4, hash: 'hash-4' }

test('an entry published here is skipped, up to the first that was not', () => {
  const own = openOwnCommits()
  own.begin().published([entry(5), entry(6)])
  own.begin().published([entry(8)])
  assert.deepEqual(own.stepOver('C', start), { sequence: 6, hash: 'hash-6' })
  assert.deepEqual(own.stepOver('C', { sequence: 7, hash: 'hash-7' }), { sequence: 8, hash: 'hash-8' })
  assert.deepEqual(own.stepOver('D', start), start)
})

test('what the feed has come past is not kept', () => {
  const own = openOwnCommits()
  own.begin().published([entry(5), entry(6)])
  own.passed([entry(5)])
  assert.deepEqual([own.wasPublished('C', 5), own.wasPublished('C', 6)], [false, true])
})

test('an entry of a commit that is not answered yet waits for the answer', () => {
  const own = openOwnCommits()
  own.ownChain('C')
  const answered: string[] = []
  own.onAnswered(() => answered.push('answered'))
  const commit = own.begin()
  assert.equal(own.mayBeAnswered('C', 5), true)
  commit.published([entry(5)])
  commit.end()
  assert.deepEqual(answered, ['answered'])
  assert.equal(own.wasPublished('C', 5), true)
})

test('an entry whose caller got no outcome is published by the feed', () => {
  const own = openOwnCommits()
  own.ownChain('C')
  const commit = own.begin()
  assert.equal(own.mayBeAnswered('C', 5), true)
  commit.end()
  assert.equal(own.mayBeAnswered('C', 5), false)
  assert.equal(own.wasPublished('C', 5), false)
})

test('commits that began after an entry was seen did not write it', () => {
  const own = openOwnCommits()
  own.ownChain('C')
  const before = own.begin()
  assert.equal(own.mayBeAnswered('C', 5), true)
  own.begin()
  before.end()
  assert.equal(own.mayBeAnswered('C', 5), false)
})

test("an entry of another replica's own chain waits for nothing", () => {
  const own = openOwnCommits()
  own.ownChain('C')
  own.begin()
  assert.equal(own.mayBeAnswered('D', 1), false)
})
