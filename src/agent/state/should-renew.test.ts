import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { jitterOf, lookEveryMs, renewalIsDue, renewAtMs, renewRetryMs, spreadMs, type LastTry } from './should-renew.ts'

const unit = fc.double({ min: 0, max: 0.999999, noNaN: true })
const times = fc
  .record({ issuedAtMs: fc.integer({ min: 0, max: 4e12 }), lifetimeMs: fc.integer({ min: 1_000, max: 4e11 }) })
  .map(({ issuedAtMs, lifetimeMs }) => ({ issuedAtMs, notAfterMs: issuedAtMs + lifetimeMs }))
const window = fc
  .tuple(fc.double({ min: 0.05, max: 0.9, noNaN: true }), fc.double({ min: 0, max: 0.09, noNaN: true }))
  .map(([renewFrom, more]) => ({ renewFrom, renewTo: renewFrom + more }))

test('renewal falls between the two fractions of the lifetime, counted from the time of issue', () => {
  fc.assert(
    fc.property(times, window, unit, (life, between, jitter) => {
      const lifetimeMs = life.notAfterMs - life.issuedAtMs
      const atMs = renewAtMs(life, between, jitter)
      assert.ok(atMs >= Math.floor(life.issuedAtMs + lifetimeMs * between.renewFrom) - 1)
      assert.ok(atMs <= life.issuedAtMs + lifetimeMs * between.renewTo)
      assert.ok(atMs < life.notAfterMs)
    }),
  )
})

test('jitter only makes it earlier', () => {
  fc.assert(
    fc.property(times, window, unit, (life, between, jitter) => {
      assert.ok(renewAtMs(life, between, jitter) <= renewAtMs(life, between, 0))
    }),
  )
})

test('a certificate of 24 hours is renewed between 12 and 16 hours after it was issued', () => {
  const hour = 3_600_000
  const life = { issuedAtMs: 1_000 * hour, notAfterMs: 1_024 * hour }
  const between = { renewFrom: 1 / 2, renewTo: 2 / 3 }
  assert.equal(renewAtMs(life, between, 0), 1_016 * hour)
  assert.ok(renewAtMs(life, between, 0.999) >= 1_012 * hour)
})

test('the jitter of a certificate is the same at every start and differs between certificates', () => {
  assert.equal(jitterOf('0a1b'), jitterOf('0a1b'))
  const units = Array.from({ length: 1000 }, (_, at) => jitterOf(`serial-${at}`))
  assert.ok(units.every((each) => each >= 0 && each < 1))
  const mean = units.reduce((sum, each) => sum + each, 0) / units.length
  assert.ok(Math.abs(mean - 0.5) < 0.05)
})

test('however long the plane is away, at least eight tries fit into what is left of a certificate', () => {
  fc.assert(
    fc.property(fc.integer({ min: 20_000, max: 90 * 86_400_000 }), unit, (remainingMs, jitter) => {
      let leftMs = remainingMs
      let tries = 0
      while (leftMs > 0 && tries < 100) {
        tries += 1
        leftMs -= renewRetryMs(tries, leftMs, jitter)
      }
      assert.ok(tries >= 8, `${tries} tries`)
    }),
  )
})

test('the ladder is 5, 10, 20, 40 and 60 minutes where the certificate has days left', () => {
  const minutes = [1, 2, 3, 4, 5, 6, 50].map((failures) => renewRetryMs(failures, 30 * 86_400_000, 0) / 60_000)
  assert.deepEqual(minutes, [5, 10, 20, 40, 60, 60, 60])
})

test('tries go on after the certificate has expired, once a minute', () => {
  assert.equal(renewRetryMs(9, -1, 0), 60_000)
})

test('a clock that was set back does not postpone the next try', () => {
  const lastTry = { atMs: 10_000_000, delayMs: 60_000 }
  assert.equal(renewalIsDue(10_000_001, 5_000, lastTry), false)
  assert.equal(renewalIsDue(10_060_000, 5_000, lastTry), true)
  assert.equal(renewalIsDue(6_000, 5_000, lastTry), true)
  assert.equal(renewalIsDue(4_000, 5_000, lastTry), false)
})

const second = 1_000
const hour = 3_600_000
const day = 24 * hour

/** How much of the certificate is left at the first try after an outage, by the agent's own rules; attempts fail at once. */
const leftAfterOutage = (
  lifetimeMs: number,
  window: { renewFrom: number; renewTo: number },
  from: number,
  jitter: number,
) => {
  const life = { issuedAtMs: 0, notAfterMs: lifetimeMs }
  const [outageFromMs, outageToMs] = [from * lifetimeMs, (from + 0.3) * lifetimeMs]
  const dueAtMs = renewAtMs(life, window, jitter)
  let lastTry: LastTry | null = null
  let failures = 0
  for (let nowMs = Math.floor(dueAtMs / second) * second; nowMs < lifetimeMs; nowMs += lookEveryMs(life)) {
    if (!renewalIsDue(nowMs, dueAtMs, lastTry)) continue
    if (nowMs < outageFromMs || nowMs >= outageToMs) return lifetimeMs - nowMs
    failures += 1
    // The worst case of the jitter of waiting is the longest wait.
    lastTry = { atMs: nowMs, delayMs: renewRetryMs(failures, lifetimeMs - nowMs, 0) }
  }
  return 0
}

test('an outage of 30 % of a lifetime from the worst moment leaves time for the next try', () => {
  const windows = [
    { renewFrom: 1 / 2, renewTo: 2 / 3 },
    { renewFrom: 0.6, renewTo: 2 / 3 },
    { renewFrom: 0.45, renewTo: 1 / 2 },
  ]
  for (const lifetimeMs of [60 * second, day, 90 * day]) {
    for (const window of windows) {
      for (const jitter of [0, 0.5, 0.999]) {
        // The worst moment is the one at which it would have been renewed.
        const dueAt = window.renewTo - (window.renewTo - window.renewFrom) * jitter
        for (const from of [0.3, dueAt - 0.01, dueAt, dueAt + 0.001]) {
          const left = leftAfterOutage(lifetimeMs, window, from, jitter)
          assert.ok(left > lifetimeMs * 0.02, `${lifetimeMs} ms, ${JSON.stringify(window)}, ${from}: ${left} ms left`)
        }
      }
    }
  }
})

test('a certificate of a minute is looked at twice a second, one of a day once', () => {
  assert.equal(lookEveryMs({ issuedAtMs: 0, notAfterMs: 60 * second }), 500)
  assert.equal(lookEveryMs({ issuedAtMs: 0, notAfterMs: day }), 1_000)
})

test('when the plane is back all agents ask within five seconds, and sooner when little lifetime is left', () => {
  assert.ok(spreadMs(day, 0.999) < 5_000)
  assert.ok(spreadMs(20 * second, 0.999) <= 200)
  assert.equal(spreadMs(-1, 0.5), 0)
})
