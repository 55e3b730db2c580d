import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { fitsBelow, isReplacementDue, longestLeaf, memoryIssuerLifetimeMs } from './issuer-life.ts'

const day = 24 * 3600 * 1000
const year = 365 * day
const root = { notBeforeMs: 0, notAfterMs: 10 * year }
const fiveYears = { notBeforeMs: 0, notAfterMs: 5 * year }

test('an intermediate is replaced at half life, and not before', () => {
  assert.equal(isReplacementDue(fiveYears, root, 90 * day, 2.5 * year - 1), false)
  assert.equal(isReplacementDue(fiveYears, root, 90 * day, 2.5 * year), true)
})

test('an intermediate is replaced before half life where its longest leaf would no longer fit', () => {
  assert.equal(isReplacementDue(fiveYears, root, 4 * year, year - 2 * day), false)
  assert.equal(isReplacementDue(fiveYears, root, 4 * year, year), true)
})

test('a leaf that fits into no intermediate does not have one made after the other', () => {
  assert.equal(isReplacementDue(fiveYears, root, 6 * year, day), false)
})

test('an intermediate that ends with the one above it is not replaced: the next would end then too', () => {
  assert.equal(isReplacementDue(fiveYears, fiveYears, 90 * day, 4 * year), false)
})

test('an intermediate from the future is replaced', () => {
  assert.equal(isReplacementDue({ notBeforeMs: year, notAfterMs: 6 * year }, root, 90 * day, 0), true)
})

test('whatever the lifetimes, a leaf that fits below a fresh issuer fits until the issuer is replaced', () => {
  const minute = 60_000
  const lifetimes = fc.integer({ min: 30 * minute, max: 10 * year })
  fc.assert(
    fc.property(
      lifetimes,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (life, part, when) => {
        const leafMs = Math.floor(fitsBelow(life) * part)
        const issuer = { notBeforeMs: 0, notAfterMs: life }
        const nowMs = Math.floor(life * when)
        // Not due a minute ago means at most a minute since: that is how often it is looked at.
        const above = { notBeforeMs: 0, notAfterMs: life + 1 }
        if (!isReplacementDue(issuer, above, leafMs, nowMs - minute) && nowMs >= minute) {
          assert.ok(nowMs + leafMs <= issuer.notAfterMs)
        }
      },
    ),
  )
})

test('a replacement lasts: the next is not due at once', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 3_600_000, max: 10 * year }),
      fc.integer({ min: 0, max: 20 * year }),
      (life, leafMs) => {
        const above = { notBeforeMs: 0, notAfterMs: 30 * year }
        const lasts = Math.min(day, life / 20) - 2
        assert.equal(isReplacementDue({ notBeforeMs: 0, notAfterMs: life }, above, leafMs, lasts), false)
      },
    ),
  )
})

test('the longest leaf counts from a fresh intermediate where the root is online, else from what is left', () => {
  const facts = { nowMs: 2 * year, intermediateLifetimeMs: 5 * year, issuing: fiveYears, domainCa: null }
  assert.equal(longestLeaf({ ...facts, root: { ...root, online: true } }), 5 * year - 2 * day)
  assert.equal(longestLeaf({ ...facts, root: { ...root, online: false } }), 3 * year)
  assert.equal(longestLeaf({ ...facts, nowMs: 9 * year, root: { ...root, online: true } }), year - 2 * day)
})

test('a memory issuer made for the longest leaf fits below its domain CA', () => {
  const facts = { nowMs: year, intermediateLifetimeMs: 5 * year, issuing: null, domainCa: fiveYears }
  const longest = longestLeaf({ ...facts, root: { ...root, online: false } })
  assert.equal(memoryIssuerLifetimeMs(longest), 4 * year)
})
