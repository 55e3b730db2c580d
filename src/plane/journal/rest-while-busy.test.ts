import assert from 'node:assert/strict'
import { test } from 'node:test'
import { restWhileBusy } from './rest-while-busy.ts'

/** How long it rests where the loop is loaded so much, one figure a look; the last one stays. */
const restedMs = async (...loads: number[]): Promise<number> => {
  let rested = 0
  let looks = 0
  await restWhileBusy(
    async (ms) => void (rested += ms),
    () => loads[Math.min(looks++, loads.length - 1)]!,
  )
  return rested
}

test('work in the background takes at most a quarter of a core where nothing else is to do', async () => {
  assert.equal(await restedMs(0), 24)
})

test('what the work itself has used does not count', async () => {
  assert.equal(await restedMs(1, 0), 24)
})

test('it rests for as long as others need the event loop', async () => {
  assert.equal(await restedMs(1, 0.9, 0.7, 0.2), 72)
})

test('it goes on behind 408 ms however busy the plane is', async () => {
  assert.equal(await restedMs(1), 408)
})
