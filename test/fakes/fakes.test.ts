import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sleep } from '#platform/timers.ts'
import { manualClock } from './manual-clock.ts'
import { manualTimers } from './manual-timers.ts'
import { seededRandom } from './seeded-random.ts'

test('a manual clock stands still, passes time on both clocks, and is set on the wall clock alone', () => {
  const clock = manualClock(1_000)
  assert.equal(clock.nowMs(), 1_000)
  clock.advance(500)
  assert.deepEqual([clock.nowMs(), clock.monotonicMs()], [1_500, 500])
  clock.set(10)
  assert.deepEqual([clock.nowMs(), clock.monotonicMs()], [10, 500])
  assert.throws(() => clock.advance(-1), RangeError)
})

test('manual timers fire in the order of their moments, and each sees its own moment', () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const fired: string[] = []
  const note = (name: string) => () => void fired.push(`${name}@${clock.nowMs()}`)
  timers.after(300, note('c'))
  timers.after(100, note('a'))
  timers.after(200, () => timers.after(50, note('b')))
  timers.after(300, note('d'))
  timers.advance(300)
  assert.deepEqual(fired, ['a@100', 'b@250', 'c@300', 'd@300'])
  assert.equal(timers.waiting(), 0)
})

test('a jump of the clock fires what it passed, once; a cancelled timer never fires', () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  let once = 0
  let repeated = 0
  timers.after(10, () => once++)
  timers.after(10, () => assert.fail('cancelled'))()
  const stop = timers.every(10, () => repeated++)
  clock.advance(35)
  assert.deepEqual([once, repeated], [1, 3])
  stop()
  clock.advance(100)
  assert.deepEqual([once, repeated, timers.waiting()], [1, 3, 0])
})

test('a wall clock set forwards fires nothing: timers count passed time', () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  let fired = 0
  timers.after(1_000, () => fired++)
  clock.set(1_000_000)
  assert.equal(fired, 0)
})

test('manual timers refuse what real ones could not keep, and carry sleep', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  assert.throws(() => timers.after(25 * 24 * 3600 * 1000, () => {}), RangeError)
  const slept = sleep(timers, 60_000)
  timers.advance(60_000)
  await slept
})

test('seeded randomness repeats with its seed, differs without, and stays in [0, 1)', () => {
  const [a, b, c] = [seededRandom('x'), seededRandom('x'), seededRandom('y')]
  assert.deepEqual(a.bytes(40), b.bytes(40))
  assert.notDeepEqual(a.bytes(40), c.bytes(40))
  for (let i = 0; i < 1_000; i++) {
    const unit = a.unit()
    assert.ok(unit >= 0 && unit < 1)
  }
})
