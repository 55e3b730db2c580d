import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openSteadyTime } from './steady-time.ts'

const startMs = 1_800_000_000_000
const day = 86_400_000

test('it passes as time does', () => {
  const clock = manualClock(startMs)
  const steadyMs = openSteadyTime(clock)
  clock.advance(3 * day)
  assert.equal(steadyMs(), startMs + 3 * day)
})

test('a wall clock that is set ahead does not take it along', () => {
  const clock = manualClock(startMs)
  const steadyMs = openSteadyTime(clock)
  clock.set(startMs + 60 * day)
  assert.equal(steadyMs(), startMs)
  clock.advance(day)
  assert.equal(steadyMs(), startMs + day)
})

test('a wall clock that is set back does', () => {
  const clock = manualClock(startMs)
  const steadyMs = openSteadyTime(clock)
  clock.set(startMs - 60 * day)
  assert.equal(steadyMs(), startMs - 60 * day)
})
