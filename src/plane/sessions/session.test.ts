import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { mostBuffered, Session } from './session.ts'

const setUp = () => {
  const socket = testSocket()
  const ends: Session[] = []
  const facts = {
    number: 7,
    openedAtMs: 0,
    lastReceivedMs: 0,
    mayGoOn: () => true,
    onEnd: (session: Session) => void ends.push(session),
  }
  return { socket, ends, session: new Session(socket, { principal: testPrincipal('a'), evidence: null, ...facts }) }
}

test('frames are numbered, and acknowledge what was accepted', () => {
  const { socket, session } = setUp()
  assert.deepEqual(
    [session.accept(2), session.accept(1), session.accept(1), session.accept(2)],
    [false, true, false, true],
  )
  session.send({ type: 'unknown_type', body: { type: 'x' } })
  session.send({ type: 'unknown_type', body: { type: 'y' } })
  assert.deepEqual(
    socket.sent.map(({ stream, seq, ack }) => [stream, seq, ack]),
    [
      [0, 1, 2],
      [0, 2, 2],
    ],
  )
})

test('a session ends once, and then nothing is sent and no listener is called again', () => {
  const { socket, session, ends } = setUp()
  session.end('CLIENT_CERT_DENIED', 'compromised')
  session.end('REPLACED', null)
  session.destroy()
  session.send({ type: 'unknown_type', body: { type: 'x' } })
  session.ping(1)
  session.pong(Buffer.from('x'))
  session.resume()
  assert.deepEqual(
    socket.sent.map(({ type, body }) => [type, body.code]),
    [['closing', 'CLIENT_CERT_DENIED']],
  )
  assert.deepEqual([socket.terminated(), ends, session.alive], [1, [session], false])
})

for (const [what, say] of [
  ['a frame', (session: Session) => session.send({ type: 'unknown_type', body: { type: 'x' } })],
  ['a ping', (session: Session) => session.ping(1)],
  ['a pong', (session: Session) => session.pong(Buffer.alloc(0))],
  ['the reason of its end', (session: Session) => session.end('REPLACED', null)],
] as const) {
  test(`a reader with too much unread is cut off instead of being sent ${what}`, () => {
    const { socket, session, ends } = setUp()
    socket.bufferedAmount = mostBuffered + 1
    say(session)
    assert.deepEqual([socket.sent, socket.terminated(), ends.length], [[], 1, 1])
  })
}

test('a caller that waits for a sign of life is called at the next one, once, and not after the end', () => {
  const { session } = setUp()
  let told = 0
  session.onceReceived(() => told++)
  session.received(5)
  session.received(6)
  assert.deepEqual([told, session.lastReceivedMs], [1, 6])
  session.onceReceived(() => told++)
  session.destroy()
  session.received(7)
  assert.equal(told, 1)
})
