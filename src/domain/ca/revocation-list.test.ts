import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deltaList, fullEveryMs, fullList, type ListedCertificate } from './revocation-list.ts'

const minute = 60_000
const hour = 60 * minute
/** A full hour. */
const dueMs = 500_000 * hour

const denied = (serial: string, atMs: number, notAfterMs = dueMs + 24 * hour): ListedCertificate => ({
  serial,
  atMs,
  reason: 'unspecified',
  notAfterMs,
})
const serials = ({ entries }: { readonly entries: readonly ListedCertificate[] }) => entries.map(({ serial }) => serial)

test('a list that nothing was denied for has the number of the moment it was due, on every replica', () => {
  const one = fullList({ denied: [denied('a', dueMs - hour)], nowMs: dueMs + minute, leastNumber: 0 })
  const other = fullList({ denied: [denied('a', dueMs - hour)], nowMs: dueMs + 29 * minute, leastNumber: 0 })
  assert.deepEqual(one, other)
  assert.equal(one.number, dueMs)
  assert.equal(one.nextUpdateMs, dueMs + hour)
})

test('a denial makes a new list, with the moment of the denial for its number', () => {
  const facts = { denied: [denied('a', dueMs - hour), denied('b', dueMs + 7)], nowMs: dueMs + minute, leastNumber: 0 }
  assert.equal(fullList(facts).number, dueMs + 7)
  assert.deepEqual(serials(fullList(facts)), ['a', 'b'])
  assert.deepEqual(serials(deltaList(facts)), ['b'])
  assert.equal(deltaList(facts).number, fullList(facts).number, 'made together, they say the same')
})

test('a number that was given out is not given again for another list', () => {
  const facts = { denied: [denied('a', dueMs + 7)], nowMs: dueMs + minute, leastNumber: dueMs + 8 }
  assert.equal(fullList(facts).number, dueMs + 8)
})

test('a denial from a clock that is ahead makes no list from the future', () => {
  const list = fullList({ denied: [denied('a', dueMs + 2 * minute)], nowMs: dueMs + minute, leastNumber: 0 })
  assert.equal(list.thisUpdateMs, dueMs + minute)
})

test('an expired certificate stays on the list that is due after its end, and is gone from the next', () => {
  const expired = denied('a', dueMs - hour, dueMs + minute)
  const at = (nowMs: number) => serials(fullList({ denied: [expired], nowMs, leastNumber: 0 }))
  assert.deepEqual(at(dueMs + 2 * minute), ['a'])
  assert.deepEqual(at(dueMs + fullEveryMs), ['a'])
  assert.deepEqual(at(dueMs + 2 * fullEveryMs), [])
})

test('whichever full list is still good says, with the newest delta, all that is denied', () => {
  const times = fc.integer({ min: 0, max: 4 * 60 })
  fc.assert(
    fc.property(fc.array(times, { maxLength: 20 }), times, times, (minutes, early, late) => {
      const [fetched, now] = [Math.min(early, late), Math.max(early, late)]
      const all = minutes.map((at, index) => denied(String(index), dueMs + at * minute))
      const until = (at: number) => ({
        denied: all.filter((one) => one.atMs <= dueMs + at * minute),
        nowMs: dueMs + at * minute,
        leastNumber: 0,
      })
      const full = fullList(until(fetched))
      if (full.nextUpdateMs <= dueMs + now * minute) return
      const delta = deltaList(until(now))
      assert.ok(delta.baseNumber !== null && delta.baseNumber <= full.number && full.number <= delta.number)
      const known = new Set([...serials(full), ...serials(delta)])
      assert.deepEqual([...known].sort(), serials(fullList(until(now))).sort())
      assert.ok(delta.nextUpdateMs > dueMs + now * minute)
    }),
  )
})
