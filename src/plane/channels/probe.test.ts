import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openProbe } from './probe.ts'
import { openSessionRegistry } from './session-registry.ts'

const setUp = () => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  const sessions = openSessionRegistry(clock)
  return { clock, timers, sessions, probe: openProbe(sessions, clock, timers) }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a node without a channel is silent at once', async () => {
  assert.equal(await setUp().probe('gone'), 'silent')
})

test('three seconds of silence, twice, are silence; whoever asks meanwhile gets the same answer', async () => {
  const { timers, sessions, probe } = setUp()
  const socket = testSocket()
  sessions.open(socket, testPrincipal('quiet'))
  const asked = probe('quiet')
  assert.equal(probe('quiet'), asked)
  timers.advance(3000)
  await turn()
  timers.advance(3000)
  assert.equal(await asked, 'silent')
  assert.deepEqual(socket.sent, ['ping', 'ping'])
})

test('a sign of life in the second round is an answer', async () => {
  const { clock, timers, sessions, probe } = setUp()
  const session = sessions.open(testSocket(), testPrincipal('slow'))
  const asked = probe('slow')
  timers.advance(3000)
  await turn()
  session.heard(clock.monotonicMs())
  assert.equal(await asked, 'answered')
})

test('a channel that opens while the old one is probed is an answer, though nobody pinged it', async () => {
  const { timers, sessions, probe } = setUp()
  sessions.open(testSocket(), testPrincipal('back'))
  const asked = probe('back')
  timers.advance(3000)
  await turn()
  timers.advance(1000)
  sessions.open(testSocket(), testPrincipal('back'))
  timers.advance(2000)
  assert.equal(await asked, 'answered')
})
