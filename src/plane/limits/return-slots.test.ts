import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openReturnSlots, openSlotHandOut } from './return-slots.ts'

test('ten thousand that are thrown out at once come back fifty a second, the first of them at once', () => {
  const slots = openReturnSlots(manualClock(0))
  const waits = Array.from({ length: 10_000 }, () => slots.nextMs())
  assert.deepEqual([waits[0], waits[1], waits[50], waits[9_999]], [0, 20, 1_000, 199_980])
})

test('no caller waits longer than five minutes, and after a pause no caller waits at all', () => {
  const clock = manualClock(0)
  const slots = openReturnSlots(clock)
  const waits = Array.from({ length: 40_000 }, () => slots.nextMs())
  assert.ok(Math.max(...waits) <= 300_000)
  clock.advance(600_000)
  assert.equal(slots.nextMs(), 0)
})

test('slots are as far apart as was asked for each, and none is sooner than the first', () => {
  const clock = manualClock(0)
  const slots = openSlotHandOut(clock)
  assert.deepEqual([slots.nextMs(1000, 10), slots.nextMs(1000, 10), slots.nextMs(1000, 500)], [1000, 1010, 1510])
  clock.advance(10_000)
  assert.equal(slots.nextMs(1000, 10), 1000)
})
