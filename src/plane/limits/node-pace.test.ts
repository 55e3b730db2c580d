import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openNodePace } from './node-pace.ts'

test('a node that asks for change after change is told to wait, others are not, and it may go on after a minute', () => {
  const clock = manualClock(0)
  const pace = openNodePace(clock, () => 1)
  for (let i = 0; i < 60; i++) assert.equal(pace.hurry('eager'), null)
  const refused = pace.hurry('eager')
  assert.equal(refused?.code, 'RATE_LIMITED')
  assert.equal(refused.retryAfterMs, 60_000)
  assert.equal(pace.hurry('calm'), null)
  clock.advance(60_000)
  assert.equal(pace.hurry('eager'), null)
})

test('three replicas together let a node do what one does, however many it spreads its haste over', () => {
  const clock = manualClock(0)
  let replicas = 3
  const paces = [1, 2, 3].map(() => openNodePace(clock, () => replicas))
  const allowed = paces
    .flatMap((pace) => Array.from({ length: 60 }, () => pace.hurry('eager')))
    .filter((no) => no === null)
  assert.equal(allowed.length, 60)
  replicas = 1
  assert.equal(paces[0]?.hurry('calm'), null)
})
