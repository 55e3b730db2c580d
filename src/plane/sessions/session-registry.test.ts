import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Standing } from '#plane/store/contract/replicas.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openSessionRegistry } from './session-registry.ts'

const setUp = () => {
  const clock = manualClock(1_700_000_000_000)
  const registry = openSessionRegistry(clock, oneReplica())
  const absent: string[] = []
  registry.onAbsent((node) => void absent.push(node))
  const open = (id: string) => {
    const socket = testSocket()
    return { socket, session: openTestSession(registry, socket, testPrincipal(id)) }
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

test('a node has two channels at most; the oldest is closed with a reason', () => {
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
  assert.deepEqual(absent, ['a'])
})

test('numbers grow, also across a restart', () => {
  const { clock, open } = setUp()
  const [first, second] = [open('a').session.number, open('b').session.number]
  clock.advance(1)
  const afterRestart = openSessionRegistry(clock, oneReplica()).nextNumber()
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

test('two replicas give no number twice, whenever they started', () => {
  const clock = manualClock(1_700_000_000_000)
  const standing = () => ({ kind: 'serving' }) as const
  const given = [1, 2, 3].flatMap((self) => {
    const registry = openSessionRegistry(clock, { self, standing })
    return Array.from({ length: 1000 }, () => registry.nextNumber())
  })
  assert.equal(new Set(given).size, given.length)
  assert.ok(given.every(Number.isSafeInteger))
})

test('once the lease of the replica is over every channel is cut by whatever is done with any of them', () => {
  for (const use of ['send', 'ping', 'pong', 'look'] as const) {
    const clock = manualClock(1_700_000_000_000)
    let kind: 'serving' | 'expired' = 'serving'
    const standing = (): Standing => (kind === 'serving' ? { kind } : { kind, why: 'no answer' })
    const registry = openSessionRegistry(clock, { self: 1, standing })
    const sockets = ['a', 'a', 'b'].map((id) => {
      const socket = testSocket()
      openTestSession(registry, socket, testPrincipal(id))
      return socket
    })
    assert.equal(registry.mayGoOn(), true)
    kind = 'expired'
    const [first] = registry.of('a')
    if (use === 'send') first?.send({ type: 'unknown_type', body: { type: 'x' } })
    if (use === 'ping') first?.ping(1)
    if (use === 'pong') first?.pong(Buffer.from('x'))
    if (use === 'look') assert.equal(registry.mayGoOn(), false)
    assert.equal(registry.count(), 0, use)
    assert.deepEqual(
      sockets.map((socket) => [socket.sent.map(({ type }) => type), socket.terminated()]),
      sockets.map(() => [['closing'], 1]),
      use,
    )
  }
})
