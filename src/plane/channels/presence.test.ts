import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { openPresence } from './presence.ts'

const setUp = () => {
  const clock = manualClock(0)
  return { clock, presence: openPresence(clock) }
}

test('nodes are absent after so long, those gone longest first', () => {
  const { clock, presence } = setUp()
  for (const node of ['c', 'a', 'b']) {
    presence.lastHere(node)
    clock.advance(100)
  }
  assert.deepEqual(presence.absentFor(150, 10), ['c', 'a'])
  assert.deepEqual(presence.absentFor(150, 1), ['c'])
  assert.deepEqual([presence.silentMs('a'), presence.silentMs('x')], [200, null])
})

test('a node that was here again starts anew, and one with a channel is not awaited', () => {
  const { clock, presence } = setUp()
  presence.lastHere('a')
  presence.lastHere('b')
  clock.advance(100)
  presence.lastHere('a')
  presence.forget('b')
  assert.deepEqual([presence.absentFor(100, 10), presence.size()], [[], 1])
  clock.advance(100)
  assert.deepEqual(presence.absentFor(100, 10), ['a'])
})

test('a wall clock that is set makes nobody absent', () => {
  const { clock, presence } = setUp()
  presence.lastHere('a')
  clock.set(365 * 24 * 3_600_000)
  assert.deepEqual(presence.absentFor(1, 10), [])
})

test('the commit of a lapse is seen while it is under way, and its trouble is only its own', async () => {
  const { presence } = setUp()
  const { promise, reject } = Promise.withResolvers<void>()
  const leaving = presence.leave('a', () => promise)
  const waiting = presence.leaving('a')
  assert.ok(waiting)
  assert.equal(presence.leaving('b'), null)
  reject(new Error('disk full'))
  await assert.rejects(leaving)
  await waiting
  assert.equal(presence.leaving('a'), null)
})
