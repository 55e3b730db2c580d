import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admission, longestWaitMs, measured, slots, startingPace, type Pace } from './issuer-pace.ts'

const busy: Pace = { ...startingPace, asking: slots, perSecond: 10 }

test('a free slot is taken at once, but not past those who wait for one', () => {
  assert.deepEqual(admission({ ...busy, asking: slots - 1 }), { kind: 'ask' })
  assert.deepEqual(admission({ ...busy, asking: slots - 1, waiting: 1 }), { kind: 'wait' })
})

test('as many wait as the issuer answers in the longest wait, and the next is told when to come back', () => {
  const most = longestWaitMs / 100
  assert.deepEqual(admission({ ...busy, waiting: most - 1 }), { kind: 'wait' })
  assert.deepEqual(admission({ ...busy, waiting: most }), {
    kind: 'come-back',
    afterMs: longestWaitMs + 100,
    apartMs: 100,
  })
})

test('however fast it was, 128 wait at most: one that falls silent holds them all', () => {
  const fast = { ...busy, perSecond: 1000 }
  assert.deepEqual(
    [admission({ ...fast, waiting: 127 }).kind, admission({ ...fast, waiting: 128 }).kind],
    ['wait', 'come-back'],
  )
})

test('a slower issuer has a shorter line', () => {
  assert.equal(admission({ ...busy, waiting: 20, perSecond: 1 }).kind, 'come-back')
})

test('the rate follows what was answered, and never reaches nothing', () => {
  let pace = busy
  for (let seconds = 0; seconds < 60; seconds++) pace = measured(pace, 40, 1000)
  assert.ok(Math.abs(pace.perSecond - 40) < 0.1)
  for (let seconds = 0; seconds < 600; seconds++) pace = measured(pace, 0, 1000)
  assert.ok(pace.perSecond > 0)
  assert.equal(admission({ ...pace, asking: slots, waiting: 0 }).kind, 'wait', 'one caller can always wait')
})

test('a time of nothing measures nothing', () => {
  assert.deepEqual(measured(busy, 5, 0), busy)
})
