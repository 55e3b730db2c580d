import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '#domain/core/journal-entry.ts'
import type { Cursor } from '#plane/store/contract/store.ts'
import {
  isGivenUp,
  isOldNews,
  newDelivery,
  nextDelivery,
  progressOf,
  waitMs,
  type Delivery,
} from './delivery-window.ts'

const day = 24 * 3600 * 1000

const delivery = (place: number, subject: string, changes: Partial<Delivery> = {}): Delivery => ({
  ...newDelivery(
    {
      cursor: `c${place}` as Cursor,
      bytes: '',
      hash: '',
      entry: { operation: `op${place}`, atMs: 0, body: { kind: 'cert_expired', subject } } as unknown as JournalEntry,
    },
    0,
    false,
  ),
  ...changes,
})
const placesOf = (...deliveries: (Delivery | null)[]) => deliveries.map((one) => one?.stored.cursor)

test('the oldest goes first', () => {
  const { due } = nextDelivery([delivery(1, 'a', { settled: true }), delivery(2, 'b'), delivery(3, 'c')], 0)
  assert.deepEqual(placesOf(due), ['c2'])
})

test('a change waits for the ones before it of the same alert, and for no other', () => {
  const window = [delivery(1, 'a', { notBeforeMs: 50 }), delivery(2, 'a'), delivery(3, 'b')]
  assert.deepEqual(placesOf(nextDelivery(window, 0).due), ['c3'])
  assert.deepEqual(placesOf(nextDelivery(window, 50).due), ['c1'])
  const held = [window[0] as Delivery, window[1] as Delivery]
  assert.deepEqual(nextDelivery(held, 20), { due: null, waitMs: 30 })
  assert.deepEqual(nextDelivery([], 20), { due: null, waitMs: null })
})

test('waiting grows to a quarter of an hour and no further', () => {
  assert.deepEqual([1, 2, 3, 4, 5, 6, 100].map(waitMs), [5000, 15_000, 45_000, 135_000, 405_000, 900_000, 900_000])
})

test('delivery is tried for a day, and an alert older than a day is not delivered', () => {
  assert.equal(isGivenUp(delivery(1, 'a'), day - 1), false)
  assert.equal(isGivenUp(delivery(1, 'a'), day), true)
  assert.equal(isOldNews(delivery(1, 'a'), day - 1), false)
  assert.equal(isOldNews(delivery(1, 'a'), day), true)
})

test('progress is the place up to which all is settled, and what is settled behind it', () => {
  const settled = { settled: true }
  assert.deepEqual(progressOf('c0' as Cursor, []), { after: 'c0', settled: [] })
  assert.deepEqual(progressOf(null, [delivery(1, 'a', settled), delivery(2, 'b', settled)]), {
    after: 'c2',
    settled: [],
  })
  assert.deepEqual(progressOf('c0' as Cursor, [delivery(1, 'a'), delivery(2, 'b', settled), delivery(3, 'c')]), {
    after: 'c0',
    settled: ['op2'],
  })
})
