import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { leaseMs, mostBehindMs, type Standing } from '#plane/store/contract/replicas.ts'
import { standingAt, type Instant } from './standing-at.ts'

const start: Instant = { monotonicMs: 5000, wallMs: Date.UTC(2030, 0, 1) }
const later = (ms: number, since: Instant = start): Instant => ({
  monotonicMs: since.monotonicMs + ms,
  wallMs: since.wallMs + ms,
})
const limits = { leaseMs, mostBehindMs }
const kindAt = (now: Instant, renewed: Instant | null, caughtUpAt: Instant | null): Standing['kind'] =>
  standingAt({ now, renewed, caughtUpAt, whyBehind: null, ...limits }).kind

const instants = fc.record({
  monotonicMs: fc.integer({ min: 0, max: 60_000 }),
  wallMs: fc.integer({ min: -3_600_000, max: 3_600_000 }),
})
const maybe = fc.option(instants, { nil: null })

test('a replica that is cut off serves for 10 s, is behind until 15 s, and then has no lease', () => {
  for (const [ms, expected] of [
    [0, 'serving'],
    [9999, 'serving'],
    [10_000, 'behind'],
    [14_999, 'behind'],
    [15_000, 'expired'],
  ] as const)
    assert.equal(kindAt(later(ms), start, start), expected, `${ms} ms`)
})

test('R1a: a replica that knows what keeps it from hearing more is behind at once, and says it', () => {
  const standing = standingAt({
    now: start,
    renewed: start,
    caughtUpAt: start,
    whyBehind: 'a chain is gone',
    ...limits,
  })
  assert.deepEqual(standing, { kind: 'behind', why: 'a chain is gone' })
})

test('a replica with a lease that has read nothing yet is behind', () => {
  assert.equal(kindAt(start, start, null), 'behind')
})

test('whichever clock says longer is believed', () => {
  fc.assert(
    fc.property(instants, maybe, maybe, fc.integer({ min: 1, max: 60_000 }), (now, renewed, caughtUpAt, moreMs) => {
      const order = ['serving', 'behind', 'expired']
      const before = order.indexOf(kindAt(now, renewed, caughtUpAt))
      for (const by of [
        { ...now, monotonicMs: now.monotonicMs + moreMs },
        { ...now, wallMs: now.wallMs + moreMs },
      ])
        assert(order.indexOf(kindAt(by, renewed, caughtUpAt)) >= before)
    }),
  )
})

test('no replica serves longer than either clock allows, however the other one jumps', () => {
  fc.assert(
    fc.property(instants, maybe, maybe, (now, renewed, caughtUpAt) => {
      const aged = (since: Instant | null, ms: number): boolean =>
        since === null || now.monotonicMs - since.monotonicMs >= ms || now.wallMs - since.wallMs >= ms
      const expected = aged(renewed, leaseMs) ? 'expired' : aged(caughtUpAt, mostBehindMs) ? 'behind' : 'serving'
      assert.equal(kindAt(now, renewed, caughtUpAt), expected)
    }),
  )
})

test('a wall clock that is set back by an hour neither ends a lease nor lengthens it', () => {
  const setBack = (ms: number): Instant => ({ ...later(ms), wallMs: start.wallMs - 3_600_000 })
  assert.equal(kindAt(setBack(9999), start, start), 'serving')
  assert.equal(kindAt(setBack(15_000), start, start), 'expired')
})

test('a machine that slept, whose monotonic clock stood still, has no lease when it wakes', () => {
  assert.equal(kindAt({ ...start, wallMs: start.wallMs + 60_000 }, start, start), 'expired')
})
