import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openRetryTimes, openRetrySpacing } from './retry-times.ts'

test('ten thousand that are thrown out at once come back fifty a second, the first of them at once', () => {
  const retryTimes = openRetryTimes(manualClock(0))
  const waits = Array.from({ length: 10_000 }, () => retryTimes.nextMs())
  assert.deepEqual([waits[0], waits[1], waits[50], waits[9_999]], [0, 20, 1_000, 199_980])
})

test('no caller waits longer than five minutes, and after a pause no caller waits at all', () => {
  const clock = manualClock(0)
  const retryTimes = openRetryTimes(clock)
  const waits = Array.from({ length: 40_000 }, () => retryTimes.nextMs())
  assert.ok(Math.max(...waits) <= 300_000)
  clock.advance(600_000)
  assert.equal(retryTimes.nextMs(), 0)
})

test('retry times are as far apart as was asked for each, and none is sooner than the first', () => {
  const clock = manualClock(0)
  const spacing = openRetrySpacing(clock)
  assert.deepEqual([spacing.nextMs(1000, 10), spacing.nextMs(1000, 10), spacing.nextMs(1000, 500)], [1000, 1010, 1510])
  clock.advance(10_000)
  assert.equal(spacing.nextMs(1000, 10), 1000)
})
