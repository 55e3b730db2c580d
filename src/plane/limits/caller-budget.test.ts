import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { sharedLimits, openCallerBudget, type CallerBudget } from './caller-budget.ts'

const minute = 60_000

const setUp = (perMinute: number, perMinutePerSource: number) => {
  const clock = manualClock(0)
  const limits = { perMinute, perMinutePerSource }
  return { clock, limits, budget: openCallerBudget(clock, () => limits) }
}

const charges = (budget: CallerBudget, source: string, times: number): string[] =>
  Array.from({ length: times }, () => budget.charge(source))

test('a limited number of failures a minute is journaled, from all sources together', () => {
  const { clock, budget } = setUp(3, 3)
  assert.deepEqual(charges(budget, 'a', 2), ['within', 'within'])
  assert.deepEqual(charges(budget, 'b', 2), ['within', 'over'])
  assert.equal(budget.room('c'), false)
  clock.advance(minute)
  assert.equal(budget.room('c'), true)
  assert.deepEqual(charges(budget, 'a', 1), ['within'])
})

test('one source cannot use up what is there for all', () => {
  const { budget } = setUp(10, 2)
  assert.deepEqual(charges(budget, 'a', 4), ['within', 'within', 'over', 'over'])
  assert.deepEqual([budget.room('a'), budget.room('b')], [false, true])
})

test('the addresses of one IPv6 network of 64 bits are one source', () => {
  const { budget } = setUp(10, 2)
  assert.deepEqual(charges(budget, '2001:db8:1:2::1', 1), ['within'])
  assert.deepEqual(charges(budget, '2001:db8:1:2:aaaa::9', 2), ['within', 'over'])
  assert.deepEqual(charges(budget, '2001:db8:1:3::1', 1), ['within'])
})

test('looking whether there is room costs nothing', () => {
  const { budget } = setUp(1, 1)
  for (let i = 0; i < 10; i++) assert.equal(budget.room('a'), true)
  assert.deepEqual(charges(budget, 'a', 1), ['within'])
})

test('failures beyond the budget are counted when their minute is over, and reported once', () => {
  const { clock, budget } = setUp(1, 1)
  charges(budget, 'a', 5)
  charges(budget, 'b', 2)
  assert.equal(budget.takeCounted(), null)
  clock.advance(minute)
  assert.deepEqual(budget.takeCounted(), { count: 6, sources: 2 })
  assert.equal(budget.takeCounted(), null)
})

test('minutes without a call are added up', () => {
  const { clock, budget } = setUp(1, 1)
  charges(budget, 'a', 3)
  clock.advance(minute)
  charges(budget, 'a', 4)
  clock.advance(minute)
  assert.deepEqual(budget.takeCounted(), { count: 5, sources: 1 })
})

test('a million sources leave no more behind than the budget, and a thousand names to count', () => {
  const { clock, budget } = setUp(5, 5)
  for (let i = 0; i < 5_000; i++) budget.charge(`10.0.${i >> 8}.${i & 255}`)
  clock.advance(minute)
  assert.deepEqual(budget.takeCounted(), { count: 4_995, sources: 1024 })
})

test('a caller gets the end of the minute as retry time, and a changed limit holds at once', () => {
  const { clock, limits, budget } = setUp(1, 1)
  budget.charge('a')
  clock.advance(45_000)
  assert.equal(budget.retryAfterMs(), 15_000)
  clock.advance(14_900)
  assert.equal(budget.retryAfterMs(), 1000)
  Object.assign(limits, { perMinute: 2, perMinutePerSource: 2 })
  assert.equal(budget.room('a'), true)
})

test('a wall clock that is set changes nothing', () => {
  const { clock, budget } = setUp(1, 1)
  budget.charge('a')
  clock.set(10 * minute)
  assert.equal(budget.room('a'), false)
})

test('three replicas together allow what one does', () => {
  assert.deepEqual(sharedLimits({ perMinute: 100, perMinutePerSource: 20 }, 1), {
    perMinute: 100,
    perMinutePerSource: 20,
  })
  assert.deepEqual(sharedLimits({ perMinute: 100, perMinutePerSource: 2 }, 3), { perMinute: 34, perMinutePerSource: 1 })
})
