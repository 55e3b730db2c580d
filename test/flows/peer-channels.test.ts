// WireGuard peers over channels, on one replica and on two.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import type { Node } from '#domain/core/node.ts'
import { openPeerBook } from '#plane/network/peer-book.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { sha256 } from '#platform/bytes.ts'
import { channelFrameLimit } from '#wire/channel/channel.ts'
import { peerAgent, type PeerAgent } from '../fakes/peer-agent.ts'
import { memberships, nodeRow, vclusterRow } from '../fakes/sample-rows.ts'
import { note, read } from '../store/harness.ts'
import { hello, setUpReplicas, turns, type TestChannel } from './replicas-setup.ts'

type Setup = Awaited<ReturnType<typeof setUpReplicas>>
type Replica = Setup['replicas'][number]

const keyOf = (id: string): string => sha256(`key of ${id}`).toString('base64')

const wireguardOf = (id: string): NonNullable<Node['wireguard']> => ({
  publicKey: keyOf(id),
  address: `fd00::${sha256(id).toString('hex').slice(0, 4)}`,
  endpoint: { ipv6: null, ipv4: '192.0.2.1', port: 51_820 },
})

const commit = async (
  replica: Replica,
  writes: Committed['writes'],
  reads: ReturnType<typeof read>[],
): Promise<void> => {
  const committed = await replica.store.commit({ reads, writes, entries: [note()] })
  assert.ok(committed !== 'lost-race')
  replica.feed.publish(committed)
  await turns()
}

/** Puts the node into the network, or changes it, by way of that replica. */
const change = async (replica: Replica, id: string, changes: Partial<Node>): Promise<void> => {
  const row = await replica.store.get('node', id)
  const value = row?.value ?? nodeRow('active', { id, hardware: { macs: [], bmcSerial: null } }).value
  await commit(replica, [{ put: 'node', value: { ...value, ...changes } }], [read('node', id, row?.version ?? 0)])
}

const join = (replica: Replica, id: string): Promise<void> => change(replica, id, { wireguard: wireguardOf(id) })

/** The row of its address, which an enrollment writes with the node. */
const keepAddress = (replica: Replica, id: string): Promise<void> => {
  const value = { address: wireguardOf(id).address, node: id, sinceMs: 0, releasedAtMs: null }
  return commit(replica, [{ put: 'overlay-address', value }], [read('overlay-address', value.address, 0)])
}

const setPeering = async (replica: Replica, name: string, peering: VCluster['peering']): Promise<void> => {
  const row = await replica.store.get('vcluster', name)
  await commit(
    replica,
    [{ put: 'vcluster', value: vclusterRow(name, { peering }).value }],
    [read('vcluster', name, row?.version ?? 0)],
  )
}

/** A channel that takes part, and what it has been told. */
const connect = async (replica: Replica, id: string, has: PeerAgent = peerAgent()) => {
  const channel: TestChannel = replica.dial(id, null)
  assert.equal(await channel.outcome, 'opened')
  channel.send('hello', hello)
  channel.send('peers_have', { revision: has.revision() })
  let seen = 0
  /** Takes what has come, and confirms it unless told otherwise. */
  const look = async (confirms = true): Promise<PeerAgent> => {
    await turns()
    const peers = channel.frames.filter(({ type }) => type === 'peers')
    for (const { body } of peers.slice(seen)) {
      const revision = has.take(body)
      if (confirms && revision !== null) channel.send('peers_applied', { revision, applied: true, detail: null })
    }
    seen = peers.length
    await turns()
    return has
  }
  return { channel, look }
}

test('who becomes active at one replica becomes a peer at the other, and is gone there when it is withdrawn', async (t) => {
  const { replicas, timers } = await setUpReplicas(t, 2, ['gpu-001'])
  const [a, b] = replicas
  assert.ok(a && b)
  await join(a, 'gpu-001')
  await join(a, 'gpu-002')
  const { look } = await connect(b, 'gpu-001')
  assert.deepEqual((await look()).nodes(), ['gpu-002'])

  await join(a, 'gpu-003')
  timers.advance(20)
  const joined = await look()
  assert.deepEqual(joined.nodes(), ['gpu-002', 'gpu-003'])
  assert.deepEqual([joined.frames.at(-1)?.base !== null, joined.frames.at(-1)?.add.length], [true, 1])

  assert.deepEqual(a.peerProofs.peersOf('gpu-003').toSorted(), ['gpu-001', 'gpu-002'])
  // No time passes: a withdrawal is not waited with.
  await change(a, 'gpu-003', { wireguard: null, membership: memberships.revoked })
  const before = await a.peerProofs.peersWithout(keyOf('gpu-003'), ['gpu-001', 'gpu-002'])
  assert.deepEqual([...before.keys()], [])
  assert.deepEqual((await look()).nodes(), ['gpu-002'])
  const confirmed = await a.peerProofs.peersWithout(keyOf('gpu-003'), ['gpu-001', 'gpu-002'])
  assert.deepEqual([...confirmed.keys()], ['gpu-001'])
  assert.equal((await a.peerProofs.stateOf('gpu-001')).applied, joined.revision())
})

test('changes that come close together are sent together; the set of an agent does not name itself', async (t) => {
  const { replicas, timers } = await setUpReplicas(t, 1, ['gpu-001'])
  const [a] = replicas
  assert.ok(a)
  await join(a, 'gpu-001')
  const { look } = await connect(a, 'gpu-001')
  await look()
  for (const id of ['gpu-002', 'gpu-003', 'gpu-004']) await join(a, id)
  assert.deepEqual((await look()).nodes(), [])
  timers.advance(20)
  const agent = await look()
  assert.deepEqual(agent.nodes(), ['gpu-002', 'gpu-003', 'gpu-004'])
  assert.equal(agent.frames.filter(({ add }) => add.length > 0).length, 1)
  assert.ok(!agent.peers.has(keyOf('gpu-001')))
})

test('after a reconnect an agent gets what changed since, nothing if nothing did, and all of it if its set is unknown', async (t) => {
  const { replicas } = await setUpReplicas(t, 2, ['gpu-001'])
  const [a, b] = replicas
  assert.ok(a && b)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) await join(a, id)
  const first = await connect(a, 'gpu-001')
  const { peers } = await first.look()
  first.channel.hangUp()
  await turns()

  const same = await connect(b, 'gpu-001', peerAgent(peers))
  assert.deepEqual((await same.look()).frames, [])
  same.channel.hangUp()
  await change(a, 'gpu-003', { membership: memberships.quarantined })
  await join(a, 'gpu-004')
  const later = await connect(b, 'gpu-001', peerAgent(peers))
  const told = await later.look()
  assert.deepEqual(told.nodes(), ['gpu-002', 'gpu-004'])
  const [frame] = told.frames
  assert.deepEqual([frame?.base === null, frame?.remove, frame?.add.length], [false, [keyOf('gpu-003')], 1])
  later.channel.hangUp()
  await turns()

  const strange = peerAgent(new Map([['x', { node: 'x', publicKey: 'x', endpoint: null, allowedIps: [] }]]))
  const whole = await (await connect(a, 'gpu-001', strange)).look()
  assert.deepEqual([whole.nodes(), whole.frames[0]?.base], [['gpu-002', 'gpu-004'], null])
})

test('a node that is not its peer any more for whatever reason is removed: quarantined, superseded, without a key', async (t) => {
  const { replicas } = await setUpReplicas(t, 1, ['gpu-001'])
  const [a] = replicas
  assert.ok(a)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004', 'gpu-005']) await join(a, id)
  const { look } = await connect(a, 'gpu-001')
  await look()
  await change(a, 'gpu-002', { membership: memberships.quarantined })
  await change(a, 'gpu-003', { membership: memberships.enrolled })
  await change(a, 'gpu-004', { wireguard: null })
  // Away, but still a member: it may be back any moment.
  await change(a, 'gpu-005', { membership: memberships.inactive })
  assert.deepEqual((await look()).nodes(), ['gpu-005'])
})

test('nodes of an isolated vCluster have each other and no other nodes for peers, from the moment they are in it', async (t) => {
  const { replicas, timers } = await setUpReplicas(t, 2, ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004'])
  const [a, b] = replicas
  assert.ok(a && b)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004']) await join(a, id)
  await setPeering(a, 'blue', 'isolated')
  const outside = await connect(b, 'gpu-001')
  const inside = await connect(b, 'gpu-003')
  await change(a, 'gpu-003', { assignment: 'blue' })
  assert.deepEqual((await inside.look()).nodes(), [])
  assert.deepEqual((await outside.look()).nodes(), ['gpu-002', 'gpu-004'])
  await change(a, 'gpu-004', { assignment: 'blue' })
  timers.advance(20)
  assert.deepEqual((await inside.look()).nodes(), ['gpu-004'])
  assert.deepEqual((await outside.look()).nodes(), ['gpu-002'])
  assert.equal((await a.peerProofs.stateOf('gpu-003')).group, 'isolated/blue')

  await setPeering(a, 'blue', 'mesh')
  timers.advance(20)
  assert.deepEqual((await inside.look()).nodes(), ['gpu-001', 'gpu-002', 'gpu-004'])
  assert.deepEqual((await outside.look()).nodes(), ['gpu-002', 'gpu-003', 'gpu-004'])
})

test('a long set comes in frames that fit', async (t) => {
  const { replicas } = await setUpReplicas(t, 1, ['gpu-001'])
  const [a] = replicas
  assert.ok(a)
  await join(a, 'gpu-001')
  const crowd = Array.from({ length: 900 }, (_, at) => `far-${at}`)
  const rows = crowd.map(
    (id) => nodeRow('active', { id, wireguard: wireguardOf(id), hardware: { macs: [], bmcSerial: null } }).value,
  )
  await commit(
    a,
    rows.map((value) => ({ put: 'node', value })),
    crowd.map((id) => read('node', id, 0)),
  )
  const { channel, look } = await connect(a, 'gpu-001')
  const agent = await look()
  assert.equal(agent.nodes().length, 900)
  assert.ok(agent.frames.length > 2 && agent.frames.slice(0, -1).every(({ more }) => more))
  for (const frame of channel.frames) assert.ok(JSON.stringify(frame).length <= channelFrameLimit)
})

test('an agent that could not apply its peers shows as a condition, until it could', async (t) => {
  const { replicas } = await setUpReplicas(t, 1, ['gpu-001'])
  const [a] = replicas
  assert.ok(a)
  await join(a, 'gpu-001')
  await join(a, 'gpu-002')
  const { channel, look } = await connect(a, 'gpu-001')
  const { frames } = await look(false)
  const revision = frames.at(-1)?.revision
  const conditions = async (): Promise<readonly string[]> =>
    (await a.store.get('node', 'gpu-001'))?.value.conditions.map(({ name, reason }) => `${name}: ${reason}`) ?? []
  channel.send('peers_applied', { revision, applied: false, detail: 'wg: Operation not permitted' })
  await turns()
  assert.deepEqual(await conditions(), ['wireguard_failed: wg: Operation not permitted'])
  assert.equal((await a.peerProofs.stateOf('gpu-001')).applied, null)
  channel.send('peers_applied', { revision, applied: true, detail: null })
  await turns()
  assert.deepEqual(await conditions(), [])
  assert.equal((await a.peerProofs.stateOf('gpu-001')).applied, revision)
})

test('an agent that says nothing of peers is sent none, and one without a key has none', async (t) => {
  const { replicas, timers } = await setUpReplicas(t, 1, ['gpu-001', 'gpu-002'])
  const [a] = replicas
  assert.ok(a)
  await join(a, 'gpu-001')
  await join(a, 'gpu-003')
  const silent = a.dial('gpu-001', null)
  assert.equal(await silent.outcome, 'opened')
  silent.send('hello', hello)
  const without = await connect(a, 'gpu-002')
  await join(a, 'gpu-004')
  timers.advance(20)
  assert.deepEqual((await without.look()).nodes(), [])
  assert.deepEqual(
    silent.frames.filter(({ type }) => type === 'peers'),
    [],
  )
})

test('a plane that starts knows the peers that the store knows', async (t) => {
  const { replicas, base } = await setUpReplicas(t, 1, ['gpu-001'])
  const [a] = replicas
  assert.ok(a)
  for (const id of ['gpu-001', 'gpu-002']) {
    await join(a, id)
    await keepAddress(a, id)
  }
  const book = await openPeerBook(base, { subscribe: () => () => {} })
  assert.equal(book.groupOf('gpu-001')?.revisionFor('gpu-001'), a.peerBook.groupOf('gpu-001')?.revisionFor('gpu-001'))
})
