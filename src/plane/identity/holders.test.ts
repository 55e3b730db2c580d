import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import { nothingObserved, type Observation, type Store } from '#plane/store/contract/store.ts'
import { evidenceOf, instanceOf, reportOf } from '../../../test/fakes/agent-words.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { nodeRow, noonMs, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openHolders } from './holders.ts'
import { openHolding } from '#plane/sessions/holding.ts'
import { openPresence } from '#plane/liveness/presence.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'
import { openSilence } from '#plane/liveness/silence.ts'

const noRows = { get: async () => null, observation: async () => nothingObserved } as unknown as Store

const setUp = (replicas: Replicas = oneReplica()) => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  const sessions = openSessionRegistry(clock, replicas)
  const open = (name: string | null) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, testPrincipal('n'), name === null ? null : evidenceOf(name))
    return { socket, session, answer: () => session.received(clock.monotonicMs()) }
  }
  const holding = openHolding({ clock, log: silentLog }, sessions, replicas)
  const presence = openPresence(clock)
  const silence = openSilence(clock, { sessions, presence, replicas, holding: { holdAgain: () => {} } })
  const holders = openHolders({ store: noRows, clock, timers }, { sessions, holding, replicas, silence })
  const find = async (node: string, instance: string | null) => {
    const found = await holders.other(node, instance)
    assert.notEqual(found, 'unknown')
    return found === 'unknown' ? null : found
  }
  return { timers, open, find }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('without a channel, with its own or with one that names no process there is no other holder, and no replica is asked', async () => {
  const { open, find } = setUp()
  assert.equal(await find('n', instanceOf('a')), null)
  const older = open(null)
  assert.equal(await find('n', null), null)
  const own = open('a')
  assert.equal(await find('n', instanceOf('a')), null)
  assert.deepEqual([own.socket.sent, older.socket.sent], [[], []])
})

test('a caller without a process id is another than one with an id', async () => {
  const { open, find } = setUp()
  const named = open('a')
  const asked = find('n', null)
  named.answer()
  assert.equal((await asked)?.evidence?.instance, instanceOf('a'))
})

test('another process that answers is named with the evidence that distinguishes it', async () => {
  const { open, find } = setUp()
  const other = open('b')
  const asked = find('n', instanceOf('a'))
  other.answer()
  const { source, serial, evidence } = (await asked) ?? {}
  assert.deepEqual([source, serial, evidence], ['192.0.2.1', 'aa', evidenceOf('b')])
})

test('three seconds of silence, twice, mean that no holder is there', async () => {
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

test('a channel here vouches for its process, until the node has a newer one elsewhere: then that replica is asked', async () => {
  const asked: string[] = []
  const alone = oneReplica()
  const { open, find } = setUp({
    ...alone,
    holds: { ...alone.holds, of: async () => ({ replica: 2, number: 9, instance: instanceOf('b') }) },
    ask: async (replica, topic) => {
      asked.push(`${replica} ${topic}`)
      return { kind: 'answer', value: { evidence: evidenceOf('b'), source: '192.0.2.9', serial: 'bb' } }
    },
  })
  const { session } = open('a')
  assert.equal(await find('n', instanceOf('a')), null)
  assert.deepEqual(asked, [])
  session.drainedAtMs = 1_000_000
  assert.equal((await find('n', instanceOf('a')))?.evidence?.instance, instanceOf('b'))
  assert.deepEqual(asked, ['2 channel.other-holder'])
})

test('a node that was here a moment ago is waited for, once; one that is not active is not', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const presence = openPresence(clock)
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const silence = openSilence(clock, { sessions, presence, replicas, holding: { holdAgain: () => {} } })
  const get = async (_kind: string, id: string) => nodeRow(id === 'n' ? 'active' : 'inactive', { id })
  const store = { ...noRows, get: get as unknown as Store['get'] }
  const holding = openHolding({ clock, log: silentLog }, sessions, replicas)
  const { awaitReturn } = openHolders({ store, clock, timers }, { sessions, holding, replicas, silence })
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

const retired = { slot: slot('a0'), untilMs: noonMs + 1000 }
const node = nodeRow('active', { membership: { kind: 'active', sinceMs: 0, slots: slots({ retired }) } }).value

const setUpCurrent = (observed: Partial<Observation> = {}) => {
  const clock = manualClock(noonMs)
  const timers = manualTimers(clock)
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const holding = openHolding({ clock, log: silentLog }, sessions, replicas)
  const store = { ...noRows, observation: async () => ({ ...nothingObserved, ...observed }) }
  const silence = { of: async () => 0 }
  const holders = openHolders({ store, clock, timers }, { sessions, holding, replicas, silence })
  const open = (name: string, serial: string): void => {
    const principal = testPrincipal(node.id, {
      credential: { by: 'certificate', issuer: 'ca1', serial, spki: `key-of-${serial}` },
    })
    holders.opened(openTestSession(sessions, testSocket(), principal, evidenceOf(name)), node)
  }
  return { open, isCurrent: (name: string, now = node) => holders.isCurrent(now, instanceOf(name)) }
}

test('the process that opened the last channel with the current certificate is its holder', async () => {
  const { open, isCurrent } = setUpCurrent()
  assert.equal(await isCurrent('a'), false)
  open('a', 'a1')
  assert.deepEqual([await isCurrent('a'), await isCurrent('b')], [true, false])
  open('b', 'a1')
  assert.deepEqual([await isCurrent('a'), await isCurrent('b')], [false, true])
})

test('a channel with a certificate that has been replaced makes no process the holder', async () => {
  const { open, isCurrent } = setUpCurrent()
  open('a', 'a1')
  open('copy', 'a0')
  assert.deepEqual([await isCurrent('a'), await isCurrent('copy')], [true, false])
})

test('the holder of the previous certificate is not the holder of one that another process has moved on to', async () => {
  const { open, isCurrent } = setUpCurrent()
  open('a', 'a1')
  const moved = { ...slots(), current: slot('b2'), retired: { slot: slot('a1'), untilMs: noonMs } }
  const now = { ...node, membership: { kind: 'active', sinceMs: 0, slots: moved } } as const
  assert.equal(await isCurrent('a', now), false)
})

test('after a restart of the plane the last report says who it was, if it named the current certificate', async () => {
  const certificate = (serial: string) => ({ serial, not_after: '2030-01-02T12:00:00.000Z' })
  const current = setUpCurrent({ report: reportOf('a', 1, { certificate: certificate('a1') }) })
  assert.deepEqual([await current.isCurrent('a'), await current.isCurrent('b')], [true, false])
  const older = setUpCurrent({ report: reportOf('a', 1, { certificate: certificate('a0') }) })
  assert.equal(await older.isCurrent('a'), false)
})
