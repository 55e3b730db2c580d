import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openHolding } from '#plane/sessions/holding.ts'
import { openPresence } from './presence.ts'
import { openProbe } from './probe.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openSilence } from './silence.ts'

const setUp = () => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const presence = openPresence(clock)
  const holding = openHolding({ clock, log: silentLog }, sessions, replicas)
  const silence = openSilence(clock, { sessions, presence, replicas, holding })
  return {
    clock,
    timers,
    sessions,
    presence,
    probe: openProbe({ clock, timers }, { sessions, silence, holding, replicas }),
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a node that has been without a channel for six seconds is silent at once', async () => {
  const { timers, presence, probe } = setUp()
  presence.lastHere('gone')
  timers.advance(6000)
  assert.deepEqual(await probe('gone', 6000), { silentMs: 6000 })
})

test('a node without a channel for less is given the rest of the six seconds to come back', async () => {
  for (const comesBack of [true, false]) {
    const { timers, sessions, presence, probe } = setUp()
    presence.lastHere('restarted')
    timers.advance(1000)
    const asked = probe('restarted', 6000)
    await turn()
    timers.advance(3000)
    await turn()
    timers.advance(1000)
    if (comesBack) openTestSession(sessions, testSocket(), testPrincipal('restarted'))
    timers.advance(1000)
    assert.deepEqual(await asked, comesBack ? 'answered' : { silentMs: 6000 })
  }
})

test('three seconds of silence, twice, are silence; further callers get the same answer', async () => {
  const { timers, sessions, probe } = setUp()
  const socket = testSocket()
  openTestSession(sessions, socket, testPrincipal('quiet'))
  const asked = probe('quiet', 6000)
  assert.equal(probe('quiet', 6000), asked)
  timers.advance(3000)
  await turn()
  timers.advance(3000)
  assert.deepEqual(await asked, { silentMs: 6000 })
  assert.deepEqual(socket.sent, ['ping', 'ping'])
})

test('a sign of life in the second round is an answer', async () => {
  const { clock, timers, sessions, probe } = setUp()
  const session = openTestSession(sessions, testSocket(), testPrincipal('slow'))
  const asked = probe('slow', 6000)
  timers.advance(3000)
  await turn()
  session.received(clock.monotonicMs())
  assert.equal(await asked, 'answered')
})

test('a channel that opens while the old one is probed is an answer without a ping', async () => {
  const { timers, sessions, probe } = setUp()
  openTestSession(sessions, testSocket(), testPrincipal('back'))
  const asked = probe('back', 6000)
  timers.advance(3000)
  await turn()
  timers.advance(1000)
  openTestSession(sessions, testSocket(), testPrincipal('back'))
  timers.advance(2000)
  assert.equal(await asked, 'answered')
})

test('P1: the silence of an open channel counts from its last frame and goes on between two callers', async () => {
  const { clock, timers, sessions, probe } = setUp()
  const session = openTestSession(sessions, testSocket(), testPrincipal('stopped'))
  const asked = async () => {
    const answer = probe('stopped', 30_000)
    for (let round = 0; round < 2; round++) {
      timers.advance(3000)
      await turn()
    }
    return answer
  }
  assert.deepEqual(await asked(), { silentMs: 6000 })
  timers.advance(10_000)
  assert.deepEqual(await asked(), { silentMs: 22_000 })
  session.received(clock.monotonicMs())
  assert.deepEqual(await asked(), { silentMs: 6000 })
})

test('P1: a node that left a moment ago is reported at once, where a long silence is asked for', async () => {
  const { timers, presence, probe } = setUp()
  presence.lastHere('left')
  timers.advance(1000)
  assert.deepEqual(await probe('left', 30_000), { silentMs: 1000 })
})

test('P1: a channel that the node closed itself did not go silent; a broken one did, as far as is known', async () => {
  const { timers, sessions, presence, probe } = setUp()
  presence.left('stopped', true)
  presence.left('broken')
  presence.left('both', true)
  presence.left('both')
  timers.advance(31_000)
  assert.deepEqual(await probe('stopped', 30_000), { silentMs: 31_000, closedByHolder: true })
  assert.deepEqual(await probe('broken', 30_000), { silentMs: 31_000 })
  assert.deepEqual(await probe('both', 30_000), { silentMs: 31_000 })
  presence.forget('stopped')
  openTestSession(sessions, testSocket(), testPrincipal('stopped'))
  assert.equal(presence.closedByHolder('stopped'), false)
})
