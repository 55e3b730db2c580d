import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDuration, formatDuration } from '#wire/core/duration.ts'
import { formatAgo, formatSpan } from './duration.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

test('a duration is one number and one unit, and nothing else', () => {
  assert.equal(parseDuration('30m'), 30 * minute)
  assert.equal(parseDuration('24h'), day)
  assert.equal(parseDuration('90d'), 90 * day)
  assert.equal(parseDuration('250ms'), 250)
  for (const wrong of ['', '30', 'm', '1h30m', '1.5h', '-1h', '+1h', ' 1h', '1h ', '1H', '1e3s', '99999999999d']) {
    assert.equal(parseDuration(wrong), null, wrong)
  }
})

test('a shown duration is exact and can be set again', () => {
  const shown: [number, string][] = [
    [0, '0s'],
    [1, '1ms'],
    [90 * second, '90s'],
    [30 * minute, '30m'],
    [day, '24h'],
    [day + 1, '86400001ms'],
    [3 * day, '3d'],
    [90 * day, '90d'],
  ]
  for (const [ms, text] of shown) {
    assert.equal(formatDuration(ms), text)
    assert.equal(parseDuration(text), ms)
  }
})

test('what is left is rounded down to its two largest units', () => {
  assert.equal(formatSpan(day - 1), '23h 59m')
  assert.equal(formatSpan(day), '1d')
  assert.equal(formatSpan(3 * day + 4 * hour + 59 * minute), '3d 4h')
  assert.equal(formatSpan(3 * day + 59 * minute), '3d')
  assert.equal(formatSpan(29 * minute + 59 * second), '29m')
  assert.equal(formatSpan(42 * second), '42s')
  assert.equal(formatSpan(999), '0s')
})

test('the past has one unit, and clocks that differ a little read as now', () => {
  const now = 1_000 * day
  assert.equal(formatAgo(now, now), 'now')
  assert.equal(formatAgo(now + 30 * second, now), 'now')
  assert.equal(formatAgo(now - 3 * minute - 20 * second, now), '3m ago')
  assert.equal(formatAgo(now - 2 * day - hour, now), '2d ago')
  assert.equal(formatAgo(now + 2 * hour, now), 'in 2h')
})
