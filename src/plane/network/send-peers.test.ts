import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#domain/core/node.ts'
import { sha256 } from '#platform/bytes.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { ListQuery, Store } from '#plane/store/contract/store.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { peerAgent } from '../../../test/fakes/peer-agent.ts'
import { memberships, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import { oneReplica, openTestSession, testPrincipal, testSocket } from '../../../test/fakes/test-session.ts'
import { openGate } from '#plane/cluster/gate.ts'
import { openPeerBook } from './peer-book.ts'
import { openSendPeers } from './send-peers.ts'
import { openSessionRegistry } from '#plane/sessions/session-registry.ts'

const member = (id: string, changes: Partial<Node> = {}): Node => {
  const publicKey = sha256(`key of ${id}`).toString('base64')
  const [high, low] = [0, 4].map((at) => sha256(id).toString('hex', at, at + 2))
  const wireguard = { publicKey, address: `fd00::${high}:${low}`, endpoint: null }
  return nodeRow('active', { id, wireguard, ...changes }).value
}

const setUp = async (nodes: readonly Node[]) => {
  const clock = manualClock(noonMs)
  const timers = manualTimers(clock)
  const feed = openFeed()
  const replicas = oneReplica()
  const sessions = openSessionRegistry(clock, replicas)
  const byId = new Map(nodes.map((value) => [value.id, { value, version: 1 }]))
  const addresses = nodes.flatMap(({ id, wireguard }) =>
    wireguard === null
      ? []
      : [{ value: { address: wireguard.address, node: id, sinceMs: 0, releasedAtMs: null }, version: 1 }],
  )
  const ordered = addresses.toSorted((x, y) => (x.value.address < y.value.address ? -1 : 1))
  const rows = {
    get: async (_kind: string, id: string) => byId.get(id) ?? null,
    list: async (kind: string, { after, limit }: ListQuery) =>
      kind === 'overlay-address' ? ordered.filter(({ value }) => value.address > (after ?? '')).slice(0, limit) : [],
  } as unknown as Pick<Store, 'list' | 'get'>
  const book = await openPeerBook(rows, feed)
  const sendPeers = openSendPeers({ clock, timers }, { book, sessions, gate: openGate(replicas) })
  const connect = (id: string) => {
    const socket = testSocket()
    const session = openTestSession(sessions, socket, testPrincipal(id))
    const agent = peerAgent()
    let seen = 0
    const look = (): typeof agent => {
      for (const frame of socket.sent.slice(seen)) if (frame.type === 'peers') agent.take(frame.body)
      seen = socket.sent.length
      return agent
    }
    return { socket, session, look }
  }
  const tell = (...values: Node[]): void =>
    feed.publish({
      kind: 'committed',
      origin: 'here',
      writes: values.map((value) => ({ put: 'node', value })),
      entries: [],
    })
  return { timers, sendPeers, connect, tell, sessions }
}

const crowd = Array.from({ length: 2000 }, (_, at) => member(`gpu-${at}`))
const turns = async (count = 20): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('an agent that does not read is waited for, and what was withdrawn meanwhile goes before the rest', async () => {
  const { timers, sendPeers, connect, tell } = await setUp(crowd)
  const { socket, session, look } = connect('gpu-0')
  socket.bufferedAmount = 100 * 1024
  sendPeers.has(session, null)
  await turns()
  assert.equal(look().frames.length, 0)
  socket.bufferedAmount = 0
  timers.advance(25)
  // The first part has gone; before the second is sent it stops reading.
  const sent = socket.send
  let parts = 0
  Object.assign(socket, {
    send(text: unknown): void {
      sent(text as string)
      if (++parts === 1) socket.bufferedAmount = 100 * 1024
    },
  })
  await turns()
  assert.equal(look().frames.length, 1)
  const gone = look().frames[0]?.add[0]?.node ?? ''
  tell(member(gone, { membership: memberships.revoked, wireguard: null }))
  socket.bufferedAmount = 0
  timers.advance(25)
  await turns()
  const agent = look()
  assert.equal(agent.frames.at(-1)?.more, false)
  assert.deepEqual([agent.frames[1]?.remove.length, agent.peers.size], [1, crowd.length - 2])
  assert.equal(session.alive, true)
})

test('an agent that asks for the whole set while it is sent one gets another after it, and one a second at most', async () => {
  const { timers, sendPeers, connect } = await setUp(crowd)
  const { socket, session, look } = connect('gpu-0')
  const wholes = (): number => look().frames.filter(({ more }) => !more).length
  socket.bufferedAmount = 100 * 1024
  sendPeers.has(session, null)
  sendPeers.has(session, null)
  socket.bufferedAmount = 0
  timers.advance(25)
  await turns()
  assert.equal(wholes(), 1)
  timers.advance(1000)
  await turns()
  assert.equal(wholes(), 2)
  for (let again = 0; again < 50; again++) {
    sendPeers.has(session, null)
    await turns(2)
  }
  assert.equal(wholes(), 2)
  timers.advance(1000)
  await turns()
  assert.equal(wholes(), 3)
  assert.equal(look().peers.size, crowd.length - 1)
})

test('of many agents that need all of it some are served at a time, and all of them in the end', async () => {
  const { sendPeers, connect, tell, timers } = await setUp(crowd)
  const connected = Array.from({ length: 40 }, (_, at) => connect(`gpu-${at}`))
  for (const { session } of connected) sendPeers.has(session, null)
  await turns(200)
  tell(member('gpu-5', { membership: memberships.quarantined }))
  await turns(200)
  timers.advance(100)
  await turns(50)
  for (const { look, session } of connected) {
    const { id } = session.principal
    if (id !== 'gpu-5') assert.equal(look().peers.size, crowd.length - 2, id)
  }
})

test('agents that read nothing are let go, so that others come to their turn', async () => {
  const { sendPeers, connect, timers } = await setUp(crowd)
  const silent = Array.from({ length: 16 }, (_, at) => connect(`gpu-${at}`))
  for (const { socket, session } of silent) {
    socket.bufferedAmount = 100 * 1024
    sendPeers.has(session, null)
  }
  const { session, look } = connect('gpu-99')
  sendPeers.has(session, null)
  await turns()
  assert.equal(look().frames.length, 0)
  for (let step = 0; step < 1300 && session.alive && look().frames.length === 0; step++) {
    timers.advance(25)
    await turns(2)
  }
  assert.equal(look().peers.size, crowd.length - 1)
  assert.ok(silent.every((one) => !one.session.alive))
})

test('a channel that has ended is not kept in mind', async () => {
  const { sendPeers, connect, tell, timers } = await setUp(crowd.slice(0, 3))
  const { session, socket } = connect('gpu-0')
  sendPeers.has(session, null)
  await turns()
  const before = socket.sent.length
  session.end('DONE', null)
  tell(member('gpu-9'))
  timers.advance(50)
  await turns()
  assert.equal(socket.sent.length, before + 1)
  assert.equal(socket.sent.at(-1).type, 'closing')
})
