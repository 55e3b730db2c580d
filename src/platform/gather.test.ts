import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { gather } from './gather.ts'

/** An event loop whose turns take so long each; how many of them pass before what is gathered is done. */
const turnsUntilDone = (turnMs: number, longestMs: number, enoughAfter = Infinity): number => {
  const clock = manualClock(0)
  const soon: (() => void)[] = []
  let turns = 0
  let done = 0
  gather(
    { clock, timers: { soon: (run) => void soon.push(run) } },
    { longestMs, enough: () => turns >= enoughAfter },
    () => done++,
  )
  for (let run = soon.shift(); run !== undefined; run = soon.shift()) {
    clock.advance(turnMs)
    turns++
    run()
  }
  assert.equal(done, 1)
  return turns
}

test('what comes alone is done in the next turn', () => {
  assert.equal(turnsUntilDone(0, 10), 1)
})

test('while the loop is busy it waits for others, and no longer than it may', () => {
  assert.equal(turnsUntilDone(1, 10), 11)
  assert.equal(turnsUntilDone(100, 10), 1)
})

test('it waits no longer than until there is enough', () => {
  assert.equal(turnsUntilDone(1, 10, 3), 3)
})
