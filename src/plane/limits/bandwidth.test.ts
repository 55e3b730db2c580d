import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { openBandwidth } from './bandwidth.ts'

test('several senders together send so much in a second, in the order in which they asked', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const bandwidth = openBandwidth(clock, timers, 1000)
  const sent: string[] = []
  for (const who of ['a', 'b', 'c', 'a', 'b', 'c']) void bandwidth.take(500).then(() => sent.push(who))
  const sentAfter = async (ms: number): Promise<string> => {
    timers.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
    return sent.join('')
  }
  assert.equal(await sentAfter(0), 'a')
  assert.equal(await sentAfter(500), 'ab')
  assert.equal(await sentAfter(1000), 'abca')
  assert.equal(await sentAfter(1000), 'abcabc')
})

test('a pause is not made up for afterwards', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const bandwidth = openBandwidth(clock, timers, 1000)
  timers.advance(60_000)
  let sent = 0
  for (let at = 0; at < 10; at++) void bandwidth.take(500).then(() => sent++)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(sent, 1)
})
