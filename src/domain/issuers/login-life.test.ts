import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isEnding, isOver, isToBeRenewed, lastLife, leftMs } from './login-life.ts'

const hour = 3_600_000
const login = { sinceMs: 1000, lifeMs: hour }
const at = (share: number): number => login.sinceMs + share * hour

test('a login is renewed at half of its life, is ending when a third is left, and is over at its end', () => {
  const seen = [0, 0.49, 0.5, 0.66, 0.67, 0.99, 1].map((share) => [
    share,
    isToBeRenewed(login, at(share)),
    isEnding(login, at(share)),
    isOver(login, at(share)),
  ])
  assert.deepEqual(seen, [
    [0, false, false, false],
    [0.49, false, false, false],
    [0.5, true, false, false],
    [0.66, true, false, false],
    [0.67, true, true, false],
    [0.99, true, true, false],
    [1, true, true, true],
  ])
})

test('one without an end needs nothing', () => {
  const endless = { sinceMs: 0, lifeMs: null }
  const asked = [isToBeRenewed, isEnding, isOver].map((is) => is(endless, 100 * 365 * 24 * hour))
  assert.deepEqual([...asked, leftMs(endless, hour)], [false, false, false, null])
})

test('what is left is never less than nothing', () => {
  assert.deepEqual([leftMs(login, at(0.25)), leftMs(login, at(2))], [0.75 * hour, 0])
})

test('a renewal that gives noticeably less than the first life is the last one, and is renewed and announced by the first life', () => {
  const renewed = (share: number) => lastLife(login, { sinceMs: at(10), lifeMs: share * hour })
  assert.deepEqual([1, 0.95].map(renewed), [null, null])
  const last = renewed(0.4)
  assert.deepEqual(last, { sinceMs: at(9.4), lifeMs: hour })
  assert.deepEqual(
    [at(10), at(10.07), at(10.4)].map((nowMs) => [
      isToBeRenewed(last, nowMs),
      isEnding(last, nowMs),
      isOver(last, nowMs),
    ]),
    [
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ],
  )
})
