// One live channel a node on three planes: who holds it is found out at every one of them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evidenceOf } from '../fakes/agent-words.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { newSecret } from '../process/plane-records.ts'
import { openRawChannel, type NotOpened, type RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { endOf } from '../system/channel-setup.ts'
import type { ReplicaDoor } from './enrollment-load.ts'
import { startThreePlanes, type ThreePlanes } from './three-planes.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 50 : 6

const three = 'path' in peer('postgres') ? shared<ThreePlanes>((scope) => startThreePlanes(scope)) : null

const joined = async (door: ReplicaDoor, id: string): Promise<RawNode> => {
  const node = rawNode(door.target)
  const enrolled = await node.enrollByToken(await newSecret(door.plane, id))
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  return node
}

/** A process of that name with what the node has, at this plane. */
const dial = (door: ReplicaDoor, node: RawNode, process: string): Promise<RawChannel | NotOpened> =>
  openRawChannel(door.target, node.identity(), node.id(), { evidence: evidenceOf(process) })

const opened = async (dialled: Promise<RawChannel | NotOpened>): Promise<RawChannel> => {
  const channel = await dialled
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  return channel
}

const sessionsAt = async ({ plane }: ReplicaDoor, node: RawNode): Promise<number> =>
  (await plane.api('GET', `/v1/nodes/${node.id()}`)).body.sessions.length

test('of three copies that connect to three planes at once one gets in', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const { doors } = three()
  for (let round = 0; round < rounds; round++) {
    const node = await joined(doors[0], `copies-${round}`)
    const dialled = await Promise.all(doors.map((door, at) => dial(door, node, `process-${at}`)))
    const channels = dialled.filter((outcome) => 'frames' in outcome)
    const refused = dialled.flatMap((outcome) => ('frames' in outcome ? [] : [outcome.body.code]))
    assert.equal(channels.length, 1, JSON.stringify(refused))
    assert.deepEqual(refused, ['DUPLICATE_IDENTITY', 'DUPLICATE_IDENTITY'])
    for (const channel of channels) channel.destroy()
  }
})

test('a process goes to another plane at once; its older channel is drained', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const {
    doors: [first, second, third],
  } = three()
  const node = await joined(first, 'moving')
  const older = await opened(dial(first, node, 'a'))
  const newer = await opened(dial(second, node, 'a'))
  assert.equal((await endOf(older, 20_000))?.code, 'REPLACED')
  assert.equal(newer.ended(), false)
  assert.equal(await sessionsAt(third, node), 1)
  newer.destroy()
  await eventually('nobody to hold it', async () => (await sessionsAt(third, node)) === 0)
})

test('a process that was killed is asked after at the plane it was on, and makes room', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const {
    doors: [first, second],
  } = three()
  const node = await joined(first, 'killed')
  const evidence = evidenceOf('a')
  const dead = await opened(openRawChannel(first.target, node.identity(), node.id(), { evidence, pings: 'ignored' }))
  const next = await opened(dial(second, node, 'b'))
  assert.equal((await endOf(dead))?.code, 'REPLACED')
  next.destroy()
})

test('a revocation at one plane is answered when the channel at another is cut', async (t) => {
  if (three === null) return void withPeer(t, 'postgres')
  const {
    doors: [first, second, third],
  } = three()
  const node = await joined(first, 'revoked')
  const channel = await opened(dial(second, node, 'a'))
  const { status, body } = await third.plane.api('POST', `/v1/nodes/${node.id()}/revoke`, { reason: 'stolen' })
  assert.deepEqual([status, body.channels_cut, body.replicas_unconfirmed], [200, 1, 0], JSON.stringify(body))
  assert.equal((await endOf(channel))?.code, 'CLIENT_CERT_DENIED')
  const again = await dial(first, node, 'a')
  assert.ok(!('frames' in again))
})
