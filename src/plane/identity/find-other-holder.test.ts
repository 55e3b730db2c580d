import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { evidenceOf, instanceOf } from '../../../test/fakes/agent-words.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { nodeRow } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openAwaitReturn, openFindOtherHolder } from './find-other-holder.ts'
import { openHolding } from '#plane/sessions/holding.ts'
import { openPresence } from '#plane/liveness/presence.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openSilence } from '#plane/liveness/silence.ts'

const setUp = () => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const open = (name: string | null) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, testPrincipal('n'), name === null ? null : evidenceOf(name))
    return { socket, session, answer: () => session.heard(clock.monotonicMs()) }
  }
  const holding = openHolding({ sessions, replicas, clock, log: silentLog })
  const findAny = openFindOtherHolder({ sessions, holding, replicas, clock, timers })
  const find = async (node: string, instance: string | null) => {
    const found = await findAny(node, instance)
    assert.notEqual(found, 'unknown')
    return found === 'unknown' ? null : found
  }
  return { timers, open, find }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('without a channel, with its own or with one that names no process there is nobody else, and nobody is asked', async () => {
  const { open, find } = setUp()
  assert.equal(await find('n', instanceOf('a')), null)
  const older = open(null)
  assert.equal(await find('n', null), null)
  const own = open('a')
  assert.equal(await find('n', instanceOf('a')), null)
  assert.deepEqual([own.socket.sent, older.socket.sent], [[], []])
})

test('whoever does not name its process is another than one that does', async () => {
  const { open, find } = setUp()
  const named = open('a')
  const asked = find('n', null)
  named.answer()
  assert.equal((await asked)?.evidence?.instance, instanceOf('a'))
})

test('another process that answers is named with what tells it apart', async () => {
  const { open, find } = setUp()
  const other = open('b')
  const asked = find('n', instanceOf('a'))
  other.answer()
  const { source, serial, evidence } = (await asked) ?? {}
  assert.deepEqual([source, serial, evidence], ['192.0.2.1', 'aa', evidenceOf('b')])
})

test('three seconds of silence, twice, mean that nobody is there', async () => {
  const { timers, open, find } = setUp()
  const { socket } = open('b')
  const asked = find('n', instanceOf('a'))
  timers.advance(3000)
  await turn()
  assert.deepEqual(socket.sent, ['ping', 'ping'])
  timers.advance(3000)
  assert.equal(await asked, null)
})

test('an answer to the second ping counts', async () => {
  const { timers, open, find } = setUp()
  const other = open('b')
  const asked = find('n', instanceOf('a'))
  timers.advance(3000)
  await turn()
  other.answer()
  assert.equal((await asked)?.evidence?.instance, instanceOf('b'))
})

test('a channel is asked once, however many want to know', async () => {
  const { open, find } = setUp()
  const other = open('b')
  const asked = [find('n', instanceOf('a')), find('n', instanceOf('c'))]
  other.answer()
  assert.deepEqual(
    (await Promise.all(asked)).map((holder) => holder?.evidence?.instance),
    [instanceOf('b'), instanceOf('b')],
  )
  assert.deepEqual(other.socket.sent, ['ping'])
})

test('a channel that ends while it is asked is not there', async () => {
  const { timers, open, find } = setUp()
  const other = open('b')
  const asked = find('n', instanceOf('a'))
  other.session.destroy()
  timers.advance(3000)
  assert.equal(await asked, null)
})

test('a node that was here a moment ago is waited for, once; one that is not active is not', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const presence = openPresence(clock)
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const silence = openSilence({ sessions, presence, clock, replicas, claimAgain: () => {} })
  const get = async (_kind: string, id: string) => nodeRow(id === 'n' ? 'active' : 'inactive', { id })
  const store = { get: get as unknown as Store['get'] }
  const awaitReturn = openAwaitReturn({ sessions, replicas, timers, store, silence })
  timers.advance(10_000)
  assert.equal(await awaitReturn('n'), 'nothing')
  presence.lastHere('n')
  timers.advance(2000)
  assert.equal(await awaitReturn('other'), 'nothing')
  const waited = awaitReturn('n')
  await turn()
  timers.advance(3999)
  assert.equal(await Promise.race([waited, turn().then(() => 'still waiting')]), 'still waiting')
  timers.advance(1)
  assert.equal(await waited, 'waited')
  assert.equal(await awaitReturn('n'), 'nothing')
})
