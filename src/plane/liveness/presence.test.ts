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

test('a wall clock that is set makes no node absent', () => {
  const { clock, presence } = setUp()
  presence.lastHere('a')
  clock.set(365 * 24 * 3_600_000)
  assert.deepEqual(presence.absentFor(1, 10), [])
})

test('a node that is back is forgotten, unless it left meanwhile; a new one counts from now', () => {
  const { clock, presence } = setUp()
  presence.lastHere('back')
  presence.lastHere('away')
  clock.advance(100)
  presence.left('just left')
  presence.awaitOnly(['away', 'new'], 50)
  clock.advance(10)
  assert.deepEqual(
    ['back', 'away', 'just left', 'new'].map((node) => presence.silentMs(node)),
    [null, 110, 10, 10],
  )
})

test('a new count knows no absences, but a node that left this replica is not forgotten', () => {
  const { clock, presence } = setUp()
  presence.lastHere('a')
  presence.left('b')
  clock.advance(100)
  presence.startAnew()
  assert.deepEqual(
    [presence.size(), presence.silentMs('b'), presence.leftMs('b'), presence.leftMs('a')],
    [0, null, 100, null],
  )
  presence.forget('b')
  assert.equal(presence.leftMs('b'), null)
})
