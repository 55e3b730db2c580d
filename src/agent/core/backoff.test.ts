import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { cappedByLifetimeMs } from './backoff.ts'

const hour = 3_600_000

test('an hour of backoff shrinks to an eighth of what is left of a certificate', () => {
  assert.equal(cappedByLifetimeMs(hour, 80_000), 10_000)
  assert.equal(cappedByLifetimeMs(hour, 24 * hour), hour)
})

test('what has expired caps nothing, or an agent would ask without end', () => {
  assert.equal(cappedByLifetimeMs(hour, 0), hour)
  assert.equal(cappedByLifetimeMs(hour, -hour), hour)
})

test('no wait is longer than it was, nor does it outlive the certificate by more than a second', () => {
  fc.assert(
    fc.property(fc.nat(24 * hour), fc.integer({ min: 1, max: 90 * 24 * hour }), (delayMs, remainingMs) => {
      const waitMs = cappedByLifetimeMs(delayMs, remainingMs)
      assert.ok(waitMs <= delayMs && waitMs <= Math.max(1_000, remainingMs))
    }),
  )
})
