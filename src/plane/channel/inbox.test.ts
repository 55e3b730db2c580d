import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openInbox } from './inbox.ts'
import { Session } from '#plane/sessions/session.ts'

const setUp = (handle: (text: string) => Promise<void>) => {
  const socket = testSocket()
  const facts = { number: 1, openedAtMs: 0, lastReceivedMs: 0, mayGoOn: () => true, onEnd: () => {} }
  const session = new Session(socket, { principal: testPrincipal('a'), evidence: null, ...facts })
  return { socket, session, inbox: openInbox(manualTimers(manualClock(0)), session, handle) }
}

/** A turn of the event loop, in which what is only waiting for turns goes on. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await turn()
}

test('frames are handled one after the other, however long each takes, and nothing is read meanwhile', async () => {
  const log: string[] = []
  const gates: (() => void)[] = []
  const { socket, inbox } = setUp(async (text) => {
    log.push(`${text} begins`)
    await new Promise<void>((resolve) => void gates.push(resolve))
    log.push(`${text} ends`)
  })
  for (const text of ['a', 'b', 'c']) inbox.text(text)
  for (let frame = 0; frame < 3; frame++) {
    await turns(3)
    assert.deepEqual([gates.length, socket.paused()], [1, true])
    gates.shift()?.()
  }
  await turns(3)
  assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  assert.equal(socket.paused(), false)
})

test('a flood waits for turns, so that other channels have theirs', async () => {
  let handled = 0
  const { inbox } = setUp(async () => void handled++)
  for (let i = 0; i < 1_000; i++) inbox.text('x')
  await turn()
  assert.ok(handled <= 32, `${handled} in one turn`)
  await turns(100)
  assert.equal(handled, 1_000)
})

test('of many pings the last is answered', async () => {
  const { socket, inbox } = setUp(async () => {})
  inbox.ping(Buffer.from('1'))
  for (let i = 2; i <= 50; i++) inbox.ping(Buffer.from(String(i)))
  await turns(5)
  assert.deepEqual(socket.sent, ['pong:1', 'pong:50'])
  inbox.ping(Buffer.from('again'))
  await turns(5)
  assert.equal(socket.sent.at(-1), 'pong:again')
})

test('what was delivered before the end and not looked at is never looked at', async () => {
  const handled: string[] = []
  const { socket, session, inbox } = setUp(async (text) => {
    handled.push(text)
    if (text === 'b') session.end('REQUEST_INVALID', null)
    await turn()
  })
  for (const text of ['a', 'b', 'c', 'd']) inbox.text(text)
  await turns(2)
  inbox.ping(Buffer.from('?'))
  await turns(10)
  assert.deepEqual(handled, ['a', 'b'])
  assert.equal(socket.sent.at(-1).type, 'closing')
})
