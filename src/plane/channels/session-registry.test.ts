import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openSessionRegistry } from './session-registry.ts'

const setUp = () => {
  const clock = manualClock(1_700_000_000_000)
  const registry = openSessionRegistry(clock)
  const absent: [string, number][] = []
  registry.onAbsent((node, session) => void absent.push([node, session]))
  const open = (id: string) => {
    const socket = testSocket()
    return { socket, session: registry.open(socket, testPrincipal(id)) }
  }
  return { clock, registry, absent, open }
}

test('a session is listed from the moment it is opened to the moment it ends, by whichever side', () => {
  const { registry, open } = setUp()
  const [a, b] = [open('a').session, open('b').session]
  assert.deepEqual([registry.of('a'), [...registry.all()], registry.count()], [[a], [a, b], 2])
  a.destroy()
  assert.deepEqual([registry.of('a'), [...registry.all()], registry.count()], [[], [b], 1])
  a.destroy()
  assert.equal(registry.count(), 1)
})

test('a node has two channels at most; the oldest makes room and is told why', () => {
  const { registry, open, absent } = setUp()
  const [first, second, third] = [open('a'), open('a'), open('a')]
  assert.deepEqual(registry.of('a'), [second.session, third.session])
  assert.equal(first.socket.sent.at(-1).body.code, 'REPLACED')
  assert.deepEqual([first.socket.terminated(), second.socket.terminated(), registry.count()], [1, 0, 2])
  assert.deepEqual(absent, [])
})

test('a node is absent when its last channel ends, whichever of them that is', () => {
  const { open, absent } = setUp()
  const [older, newer] = [open('a').session, open('a').session]
  older.destroy()
  assert.deepEqual(absent, [])
  newer.destroy()
  assert.deepEqual(absent, [['a', newer.number]])
})

test('numbers grow, also across a restart', () => {
  const { clock, open } = setUp()
  const [first, second] = [open('a').session.number, open('b').session.number]
  clock.advance(1)
  const afterRestart = openSessionRegistry(clock).open(testSocket(), testPrincipal('a')).number
  assert.ok(first < second && second < afterRestart)
  assert.ok(Number.isSafeInteger(afterRestart))
})

test('ending sessions while they are looked through misses none', () => {
  const { registry, open } = setUp()
  for (let i = 0; i < 10; i++) open(`n-${i >> 1}`)
  for (const session of registry.of('n-0')) session.destroy()
  assert.deepEqual([registry.of('n-0'), registry.count()], [[], 8])
})

test('a closed registry has ended them all, and takes no other', () => {
  const { registry, open } = setUp()
  const sockets = [open('a'), open('a'), open('b')].map(({ socket }) => socket)
  registry.close('PLANE_STOPPING', 'the plane is restarting')
  assert.deepEqual(
    sockets.map((socket) => [socket.sent.at(-1).body.code, socket.terminated()]),
    sockets.map(() => ['PLANE_STOPPING', 1]),
  )
  assert.deepEqual([registry.count(), registry.isClosed()], [0, true])
  assert.throws(() => open('c'))
})
