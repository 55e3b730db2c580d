import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockOffset, clockTrouble, offsetNow, standingAt, type Instant } from './standing-at.ts'

const sent: Instant = { monotonicMs: 5000, wallMs: Date.UTC(2030, 0, 1) }
const after = (ms: number, setByMs = 0): Instant => ({
  monotonicMs: sent.monotonicMs + ms,
  wallMs: sent.wallMs + ms + setByMs,
})
const tolerance = 30_000

test('R2: a slow answer is no wrong clock: the database may have read its clock at any moment in between', () => {
  for (const databaseMs of [sent.wallMs, sent.wallMs + 40_000, sent.wallMs + 80_000])
    assert.equal(clockTrouble(clockOffset(sent, after(80_000), databaseMs), after(80_000), tolerance), null)
  assert.notEqual(clockTrouble(clockOffset(sent, after(80_000), sent.wallMs - 30_001), after(80_000), tolerance), null)
  assert.notEqual(clockTrouble(clockOffset(sent, after(80_000), sent.wallMs + 110_001), after(80_000), tolerance), null)
})

test('R2: a clock that is more than the tolerance ahead or behind is named with how far', () => {
  const said = (offMs: number) => clockTrouble(clockOffset(sent, after(2), sent.wallMs - offMs), after(2), tolerance)
  assert.equal(said(30_000), null)
  assert.equal(said(-30_000), null)
  assert.match(said(600_500) ?? '', /is 10 min ahead of the database's, and 30 s are tolerated/)
  assert.match(said(-3 * 86_400_000) ?? '', /behind the database's/)
})

test('R2: a clock that is set after the last answer is noticed without another one, and when it is set back', () => {
  const measured = clockOffset(sent, after(2), sent.wallMs + 1)
  assert.equal(offsetNow(measured, after(700, -60_000)), -60_000)
  const facts = { renewed: after(0), caughtUpAt: after(0), whyBehind: null, leaseMs: 15_000, mostBehindMs: 10_000 }
  const kindAt = (now: Instant) => standingAt({ ...facts, now, clock: measured, clockToleranceMs: tolerance }).kind
  assert.equal(kindAt(after(700)), 'serving')
  assert.equal(kindAt(after(700, -60_000)), 'skewed')
  assert.equal(kindAt(after(800)), 'serving')
  assert.equal(kindAt(after(16_000, -60_000)), 'expired', 'one without a lease answers nothing, whatever its clock')
})
