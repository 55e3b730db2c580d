import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openLivedTime } from './lived-time.ts'

const day = 24 * 3600_000
const madeAtMs = Date.UTC(2030, 0, 1)

/** As much of a store as counts lived time; it outlives the processes. */
const setUp = () => {
  let ms = 0
  const lived = { lived: async () => ms, addLived: async (more: number) => void (ms += more) }
  const journal = { read: async () => [{ entry: { atMs: madeAtMs } }] }
  const store = { ...lived, journal } as unknown as Store
  const process = (nowMs: number) => {
    const clock = manualClock(nowMs)
    const time = openLivedTime(store, clock)
    const asLeader = { ...store }
    return { clock, time, asLeader, another: { ...store } }
  }
  return { process }
}

test('L2: a process that boots 3 days, 400 days or 20 years ahead moves the lived time by what it has lived, and no more', async () => {
  for (const aheadMs of [3 * day, 400 * day, 20 * 365 * day]) {
    const { process } = setUp()
    const { clock, time, asLeader } = process(madeAtMs + aheadMs)
    assert.equal(await time.nowMs(), madeAtMs)
    await time.add(asLeader)
    for (let hours = 0; hours < 48; hours++) {
      clock.advance(3600_000)
      await time.add(asLeader)
    }
    assert.equal(await time.nowMs(), madeAtMs + 2 * day)
    assert.equal(await process(madeAtMs + 2 * day).time.nowMs(), madeAtMs + 2 * day)
  }
})

test('L2: the lived time is never ahead of a clock that is behind, and takes no harm from it', async () => {
  const { process } = setUp()
  const first = process(madeAtMs)
  await first.time.add(first.asLeader)
  first.clock.advance(10 * day)
  await first.time.add(first.asLeader)
  assert.equal(await process(0).time.nowMs(), 0)
  assert.equal(await process(madeAtMs + 12 * day).time.nowMs(), madeAtMs + 10 * day)
})

test('L2: what passed under another leader, and a clock that is set, count for nothing', async () => {
  const { process } = setUp()
  const { clock, time, asLeader, another } = process(madeAtMs)
  await time.add(asLeader)
  clock.advance(day)
  // It leads anew, since when nobody knows: what another leader counted is not counted here too.
  await time.add(another)
  clock.set(madeAtMs + 900 * day)
  await time.add(another)
  assert.equal(await time.nowMs(), madeAtMs)
})
