import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { jumpMs, openJudgedClock } from './judged-clock.ts'

const trueMs = Date.UTC(2026, 5, 1)
const minute = 60_000
const year = 365 * 24 * 60 * minute
const tolerance = 5 * minute

test('a clock that no statement contradicts is believed', () => {
  const system = manualClock(trueMs)
  const clock = openJudgedClock(system)
  assert.deepEqual([clock.nowMs(), clock.offsetMs()], [trueMs, 0])
})

test('within the tolerance the clock of the machine stands', () => {
  const system = manualClock(trueMs - tolerance)
  const clock = openJudgedClock(system)
  clock.learn(trueMs, tolerance, clock.reading())
  assert.deepEqual([clock.nowMs(), clock.offsetMs()], [trueMs - tolerance, 0])
})

for (const wrongBy of [-10 * year, 10 * year, -10 * minute, 10 * minute, -trueMs]) {
  test(`a clock that is wrong by ${wrongBy} ms is judged, and time goes on`, () => {
    const system = manualClock(trueMs + wrongBy)
    const clock = openJudgedClock(system)
    clock.learn(trueMs, tolerance, clock.reading())
    assert.deepEqual([clock.nowMs(), clock.offsetMs()], [trueMs, -wrongBy])
    system.advance(minute)
    assert.equal(clock.nowMs(), trueMs + minute)
  })
}

test('monotonic time is never touched', () => {
  const system = manualClock(0)
  const clock = openJudgedClock(system)
  clock.learn(trueMs, tolerance, clock.reading())
  system.advance(minute)
  assert.equal(clock.monotonicMs(), minute)
})

test('a clock that is set right is followed at once, without an answer of the plane', () => {
  const system = manualClock(0)
  const clock = openJudgedClock(system)
  clock.learn(trueMs, tolerance, clock.reading())
  system.advance(minute)
  system.set(trueMs + minute + 1_000)
  assert.deepEqual([clock.nowMs(), clock.offsetMs()], [trueMs + minute + 1_000, 0])
  // What was told once is forgotten: a machine that sleeps an hour later has a clock that is right.
  system.set(trueMs + 60 * minute)
  assert.deepEqual([clock.nowMs(), clock.offsetMs()], [trueMs + 60 * minute, 0])
})

test('a clock that is set from one wrong time to another does not move the judged time', () => {
  const system = manualClock(0)
  const clock = openJudgedClock(system)
  clock.learn(trueMs, tolerance, clock.reading())
  system.set(20 * year)
  assert.equal(clock.nowMs(), trueMs)
})

test('what is learned later counts', () => {
  const system = manualClock(trueMs)
  const clock = openJudgedClock(system)
  clock.learn(trueMs + year, tolerance, clock.reading())
  assert.equal(clock.offsetMs(), year)
  clock.learn(trueMs + 1_000, tolerance, clock.reading())
  assert.equal(clock.offsetMs(), 0)
})

test('a clock that was set jumps, one that runs does not', () => {
  const before = { wallMs: 1_000_000, monotonicMs: 5 }
  assert.equal(jumpMs(before, { wallMs: 1_001_000, monotonicMs: 1_005 }), 0)
  assert.equal(jumpMs(before, { wallMs: 1_001_000 + 600 * minute, monotonicMs: 1_005 }), 600 * minute)
  assert.equal(jumpMs(before, { wallMs: 1_001_000 - 60 * minute, monotonicMs: 1_005 }), -60 * minute)
})

test('nothing is learned from an answer during which the clock was set or the machine slept', () => {
  const system = manualClock(trueMs)
  const clock = openJudgedClock(system)
  for (const jumpedMs of [7 * 60 * minute, -7 * 60 * minute]) {
    const askedAt = clock.reading()
    // The plane answers here, by the time that is true now.
    const statedMs = system.nowMs()
    system.set(statedMs + jumpedMs)
    assert.equal(clock.learn(statedMs, tolerance, askedAt), false)
    assert.deepEqual([clock.nowMs(), clock.offsetMs()], [statedMs + jumpedMs, 0])
  }
  assert.equal(clock.learn(trueMs + year, tolerance, clock.reading()), true)
  const askedAt = clock.reading()
  system.set(system.nowMs() + 60 * minute)
  assert.equal(clock.learn(trueMs, tolerance, askedAt), false)
  assert.equal(clock.nowMs(), trueMs + year, 'what was learned before stands')
})

test('an answer that took long is learned from while the clock runs on', () => {
  const system = manualClock(trueMs - year)
  const clock = openJudgedClock(system)
  const askedAt = clock.reading()
  system.advance(2 * tolerance)
  assert.equal(clock.learn(trueMs, tolerance, askedAt), true)
  assert.equal(clock.nowMs(), trueMs)
})

test('however the clock is set, what is judged is near the truth or what the machine says', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(10 * minute) }),
    fc.record({ kind: fc.constant('set' as const), ms: fc.integer({ min: 0, max: 2 * trueMs }) }),
    fc.record({ kind: fc.constant('learn' as const), ms: fc.constant(0) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const system = manualClock(trueMs)
      const clock = openJudgedClock(system)
      for (const { kind, ms } of steps) {
        if (kind === 'advance') system.advance(ms)
        if (kind === 'set') system.set(ms)
        const truth = trueMs + system.monotonicMs()
        if (kind === 'learn') {
          clock.learn(truth, tolerance, clock.reading())
          assert.ok(Math.abs(clock.nowMs() - truth) <= tolerance)
        }
        const isTrue = Math.abs(clock.nowMs() - truth) <= tolerance
        assert.ok(isTrue || clock.nowMs() === system.nowMs())
        assert.equal(clock.offsetMs() === 0, clock.nowMs() === system.nowMs())
      }
    }),
  )
})
