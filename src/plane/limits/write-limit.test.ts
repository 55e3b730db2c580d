import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openWriteLimit } from './write-limit.ts'

test('a node that asks for change after change has to wait, others do not, and it may go on after a minute', () => {
  const clock = manualClock(0)
  const writeLimit = openWriteLimit(clock, () => 1)
  for (let i = 0; i < 60; i++) assert.equal(writeLimit.take('eager'), null)
  const refused = writeLimit.take('eager')
  assert.equal(refused?.code, 'RATE_LIMITED')
  assert.equal(refused.retryAfterMs, 60_000)
  assert.equal(writeLimit.take('calm'), null)
  clock.advance(60_000)
  assert.equal(writeLimit.take('eager'), null)
})

test('three replicas together let a node do what one does, however many it spreads its requests over', () => {
  const clock = manualClock(0)
  let replicas = 3
  const limits = [1, 2, 3].map(() => openWriteLimit(clock, () => replicas))
  const allowed = limits
    .flatMap((writeLimit) => Array.from({ length: 60 }, () => writeLimit.take('eager')))
    .filter((no) => no === null)
  assert.equal(allowed.length, 60)
  replicas = 1
  assert.equal(limits[0]?.take('calm'), null)
})
