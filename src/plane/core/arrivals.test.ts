import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { openArrivals, type Arrival } from './arrivals.ts'
import { openFeed } from './feed.ts'

const committed = (node: string): Committed => ({
  kind: 'committed',
  origin: 'here',
  writes: [],
  entries: [{ cursor: '' as never, bytes: '', hash: '', entry: { node } as JournalEntry }],
})

const setUp = (most: number) => {
  const feed = openFeed()
  const timers = manualTimers(manualClock(0))
  const arrivals = openArrivals(feed, timers, most)
  const expect = (node: string): Arrival => {
    const arrival = arrivals.expect((entry) => entry.node === node)
    assert.ok(arrival.kind === 'expected')
    return arrival
  }
  return { feed, timers, arrivals, expect }
}

test('what arrives between asking and waiting is not missed', async () => {
  const { feed, timers, expect } = setUp(2)
  const arrival = expect('a')
  feed.publish(committed('a'))
  await arrival.within(1000)
  assert.equal(timers.waiting(), 0)
})

test('only what fits ends the wait, or the time does', async () => {
  const { feed, timers, expect } = setUp(2)
  const arrival = expect('a')
  let over = false
  const waiting = arrival.within(1000).then(() => (over = true))
  feed.publish(committed('b'))
  timers.advance(999)
  await Promise.resolve()
  assert.equal(over, false)
  timers.advance(1)
  await waiting
})

test('beyond the bound a caller is asked to come back, and a released place is free again', () => {
  const { arrivals, expect } = setUp(1)
  const first = expect('a')
  const second = arrivals.expect(() => true)
  assert.equal(second.kind === 'refused' && second.code, 'BUSY')
  first.cancel()
  expect('a')
})

test('when the plane stops all waiting callers are released, and later ones are asked to come back', async () => {
  const { arrivals, expect } = setUp(2)
  const waiting = expect('a').within(1000)
  arrivals.close()
  await waiting
  const late = arrivals.expect(() => true)
  assert.ok(late.kind === 'refused' && late.code === 'BUSY' && late.retryAfterMs !== null)
})
