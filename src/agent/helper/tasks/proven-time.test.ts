import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemRandom } from '#platform/random.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { openProvenTime } from './proven-time.ts'

const minuteMs = 60_000

const proven = (hostMs: number) => {
  const clock = manualClock(hostMs)
  const time = openProvenTime(clock, systemRandom)
  time.prove({ nonce: time.newNonce(), timeMs: 1_000_000_000 })
  return { clock, time }
}

test('a time that was proven goes on for an hour, whatever the clock of the host says', () => {
  const { clock, time } = proven(0)
  clock.advance(59 * minuteMs)
  assert.equal(time.nowMs(), 1_000_000_000 + 59 * minuteMs)
  clock.advance(2 * minuteMs)
  assert.equal(time.nowMs(), null)
  assert.equal(time.floorMs(), 1_000_000_000 + 61 * minuteMs)
})

test('a machine that slept, or whose clock was set, has to prove the time anew', () => {
  const { clock, time } = proven(0)
  clock.advance(minuteMs)
  // The clock of the host has counted ten hours of sleep, and the other one none.
  clock.set(clock.nowMs() + 600 * minuteMs)
  assert.equal(time.nowMs(), null)
  time.prove({ nonce: time.newNonce(), timeMs: 2_000_000_000 })
  clock.set(clock.nowMs() - 4 * minuteMs)
  assert.equal(time.nowMs(), 2_000_000_000)
  clock.set(clock.nowMs() - 2 * minuteMs)
  assert.equal(time.nowMs(), null)
})
