import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockWords } from '#domain/issuers/issuer-clock.ts'
import { measuringClock } from './issuer-clock.ts'

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 900)
const never = new AbortController().signal

/** What is measured after answers with these dates. */
const after = async (...dates: readonly (number | null)[]): Promise<number | null> => {
  const left = [...dates]
  const measured = measuringClock(
    { nowMs: () => nowMs },
    { ask: async () => ({ status: 200, json: null, dateMs: left.shift() ?? null }), close: () => {} },
  )
  for (const _ of dates) await measured.client.ask({ method: 'GET', path: '/' }, never)
  return measured.aheadMs()
}

test('the clock of an issuer is known by the date of its last answer that has one', async () => {
  const second = Math.floor(nowMs / 1000) * 1000
  assert.deepEqual(
    [
      await after(),
      await after(null),
      await after(second),
      await after(second + 90_000, null),
      await after(second - 90_000),
    ],
    [null, null, 0, 89_100, -89_900],
  )
})

test('a clock that is half a minute off is worth a word', () => {
  assert.deepEqual([clockWords(null), clockWords(0), clockWords(29_999), clockWords(-29_999)], [null, null, null, null])
  assert.equal(clockWords(94_500), "its clock is 1 min 34 s ahead of this plane's")
  assert.equal(clockWords(-30_000), "its clock is 30 s behind this plane's")
})
