import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isIdleBetween, processorIsIdle } from '../../scripts/spare-processors.ts'
import { openQueue } from '../../scripts/test-times.ts'

const known = {
  long: { seconds: 60, cpu: 40 },
  short: { seconds: 6, cpu: 6 },
  sleepy: { seconds: 90, cpu: 3 },
  dozing: { seconds: 30, cpu: 1 },
}

test('the slowest file is started first, and a file without a record behind those that are known to be longer', () => {
  const queue = openQueue(['unknown', 'short', 'long'], String, known)
  assert.equal(queue.isEmpty(), false)
  assert.deepEqual(
    [1, 2, 3, 4].map(() => queue.next('working')),
    ['long', 'short', 'unknown', null],
  )
  assert.equal(queue.isEmpty(), true)
})

test('a lane for idle processors takes a file when a tenth of their time is idle, and ends with the files', async () => {
  const before = { idle: 1000, all: 5000 }
  assert.equal(isIdleBetween(before, { idle: 1150, all: 6000 }), true)
  assert.equal(isIdleBetween(before, { idle: 1050, all: 6000 }), false)
  assert.equal(await processorIsIdle(() => true), false)
})

test('what does little but wait goes to the lanes for that, and each lane takes what the others have left', () => {
  const queue = openQueue(['short', 'dozing', 'long', 'sleepy'], String, known)
  assert.equal(queue.next('waiting'), 'sleepy')
  assert.equal(queue.next('working'), 'long')
  assert.equal(queue.next('working'), 'short')
  assert.equal(queue.next('working'), 'dozing')
  assert.equal(queue.next('waiting'), null)
  const both = openQueue(['short', 'dozing', 'sleepy'], String, known)
  assert.deepEqual(
    [1, 2, 3].map(() => both.next('only waiting')),
    ['sleepy', 'dozing', null],
    'one that only waits leaves work to the others',
  )
  assert.equal(both.next('waiting'), 'short')
  const rest = openQueue(['short', 'long'], String, known)
  assert.equal(rest.next('waiting'), 'long')
})

test('a file whose peer is still being built is left for later, and holds up no other', () => {
  const held = new Set(['sleepy', 'long'])
  const queue = openQueue(['short', 'dozing', 'long', 'sleepy'], String, known, (job) => held.has(job))
  assert.deepEqual(
    (['working', 'waiting', 'waiting', 'working'] as const).map((lane) => queue.next(lane)),
    ['short', 'dozing', null, null],
  )
  assert.equal(queue.isEmpty(), false)
  held.clear()
  assert.equal(queue.next('only waiting'), 'sleepy')
  assert.equal(queue.next('only waiting'), null)
  assert.equal(queue.next('waiting'), 'long')
  assert.equal(queue.isEmpty(), true)
})
