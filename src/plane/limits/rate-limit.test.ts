import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openRateLimit } from './rate-limit.ts'

const setUp = (perMinute: number, perMinutePerKey: number) => {
  const clock = manualClock(0)
  return { clock, limit: openRateLimit(clock, () => ({ perMinute, perMinutePerKey })) }
}

test('a key has its own limit, all keys together have another, and a new minute begins with nothing taken', () => {
  const { clock, limit } = setUp(3, 2)
  assert.deepEqual([limit.take('a'), limit.take('a'), limit.take('a')], ['within', 'within', 'over'])
  assert.deepEqual([limit.take('b'), limit.take('b'), limit.room('c')], ['within', 'over', false])
  clock.advance(60_000)
  assert.deepEqual([limit.room('a'), limit.take('a')], [true, 'within'])
  assert.deepEqual(limit.takeCounted(), { count: 2, keys: 2 })
})

test('without a limit for all, no key is refused because of others', () => {
  const { limit } = setUp(Infinity, 1)
  for (let at = 0; at < 5000; at++) assert.equal(limit.take(`key-${at}`), 'within')
  assert.equal(limit.take('key-0'), 'over')
})

test('beyond the most keys of a minute, a key is neither counted nor limited', () => {
  const clock = manualClock(0)
  const limit = openRateLimit(clock, () => ({ perMinute: Infinity, perMinutePerKey: 1 }), { mostKeys: 2 })
  for (const key of ['a', 'b', 'c', 'c', 'c']) assert.equal(limit.take(key), 'within')
  assert.deepEqual([limit.room('a'), limit.room('b'), limit.room('c')], [false, false, true])
})
