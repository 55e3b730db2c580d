// What a node may say on a channel, and who may open one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelFrameLimit } from '#wire/channel/channel.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import { openRawChannel, type RawChannel } from '../process/raw-channel.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { channelOf, endOf, frameText, refusedChannel } from './channel-setup.ts'

const plane = sharedPlane()
let nodes = 0
const newNode = () => activeNode(plane(), `frames-${++nodes}`)
const record = async (id: string) => (await plane().api('GET', `/v1/nodes/${id}`)).body

const applied = { config_revision: 7, trust_revision: 0, persisted: true, detail: null }

test('both sides begin with a hello, and what the agent says of itself is in the store', async () => {
  const node = await newNode()
  const hello = { agent_version: '9.9.9', capabilities: ['exec', 'logs'], config_revision: 41, trust_revision: 0 }
  const channel = await channelOf(node, { hello })
  const said = channel.frames[0]
  const offered = [
    ...['sighting', 'earlier_sightings', 'peers', 'report_connection'],
    ...['overlay', 'overlay_details', 'outputs', 'tasks', 'issuer-roots', 'marked'],
  ]
  assert.deepEqual([said.type, said.stream, said.seq, said.body.capabilities], ['hello', 0, 1, offered])
  assert.ok(Math.abs(Date.parse(said.body.server_time) - Date.now()) < 60_000)
  const known = await eventually('the record', async () => {
    const seen = await record(node.id())
    return seen.agent_version === '9.9.9' ? seen : null
  })
  assert.equal(known.config_revision, 41)
  assert.equal(known.sessions[0].number, said.body.session)
  channel.destroy()
})

test('frames are acknowledged in the order they came, and last_seen advances with each', async () => {
  const node = await newNode()
  const channel = await channelOf(node)
  const before = (await record(node.id())).last_seen
  await eventually('time to pass', () => new Date().toISOString() > before)
  for (let i = 0; i < 5; i++) channel.send('applied', { ...applied, config_revision: 100 + i })
  channel.send('what-is-this', {})
  assert.equal((await channel.frame('unknown_type')).ack, 7)
  const after = await record(node.id())
  assert.equal(after.config_revision, 104)
  assert.ok(after.last_seen > before)
  channel.destroy()
})

test('an unknown type is answered, and the channel goes on', async () => {
  const channel = await channelOf(await newNode())
  channel.send('quantum', { spin: 'up' })
  channel.send('x'.repeat(200), {})
  await eventually('two answers', () => channel.frames.filter(({ type }) => type === 'unknown_type').length === 2)
  const types = channel.frames.filter(({ type }) => type === 'unknown_type').map(({ body }) => body.type)
  assert.deepEqual(types, ['quantum', 'x'.repeat(64)])
  assert.equal(channel.ended(), false)
  channel.destroy()
})

const wrong: Readonly<Record<string, (channel: RawChannel) => unknown>> = {
  'text that is no JSON': (channel) => channel.sendText('hello?'),
  'JSON that is no frame': (channel) => channel.sendText('[1, 2]'),
  'a known type with another body': (channel) => channel.send('applied', { ...applied, persisted: 'perhaps' }),
  'a known type with more than its body': (channel) => channel.send('applied', { ...applied, more: 1 }),
  'a sequence number left out': (channel) => channel.sendText(frameText(3, 'applied', applied)),
  'a sequence number used twice': (channel) => channel.sendText(frameText(1, 'applied', applied)),
  'a stream nobody opened': (channel) => channel.sendText(frameText(2, 'applied', applied, 5)),
  'a second hello': (channel) =>
    channel.send('hello', { agent_version: 'raw', capabilities: [], config_revision: 0, trust_revision: 0 }),
  'a task id that is none': (channel) => channel.send('tasks_state', { verifiers: 1, held: ['any'] }),
  'a binary frame': (channel) => channel.sendBinary(Buffer.alloc(16)),
}

for (const [what, send] of Object.entries(wrong)) {
  test(`${what} ends the channel, and the plane says why`, async () => {
    const channel = await channelOf(await newNode(), { closes: 'ignored' })
    send(channel)
    const end = await endOf(channel)
    assert.equal(end?.code, 'REQUEST_INVALID')
    assert.ok(typeof end.detail === 'string' && end.detail.length > 5)
    channel.destroy()
  })
}

test('anything before the hello ends the channel', async () => {
  const channel = await channelOf(await newNode(), { hello: null })
  channel.sendText(frameText(1, 'applied', applied))
  assert.equal((await endOf(channel))?.code, 'REQUEST_INVALID')
})

test('what came behind a wrong frame is not looked at', async () => {
  const node = await newNode()
  const channel = await channelOf(node)
  channel.send('applied', { ...applied, config_revision: 1 })
  channel.sendText('{')
  channel.send('applied', { ...applied, config_revision: 2 })
  await endOf(channel)
  assert.equal((await record(node.id())).config_revision, 1)
})

test('a message of more than 64 KiB closes the channel', async () => {
  const channel = await channelOf(await newNode())
  channel.sendText(frameText(2, 'applied', { ...applied, detail: 'x'.repeat(channelFrameLimit) }))
  await endOf(channel)
  assert.equal(channel.closeFrame()?.code, 1009)
})

test('what a node reports last is what stays in the store, however quickly it changed its mind', async () => {
  const node = await newNode()
  const channel = await channelOf(node)
  const rounds = 25
  for (let i = 0; i < rounds; i++) {
    channel.send('applied', { ...applied, persisted: false, detail: 'disk full' })
    channel.send('applied', { ...applied, persisted: true })
  }
  channel.send('are-we-done', {})
  await channel.frame('unknown_type', { withinMs: 20_000 })
  assert.deepEqual((await record(node.id())).conditions, [])
  const { entries } = (await plane().api('GET', `/v1/journal?node=${node.id()}&limit=1000`)).body
  const raised = entries.filter(({ entry }: { entry: { type: string } }) => /condition/.test(entry.type))
  assert.equal(raised.length, 2 * rounds)
  channel.destroy()
})

test('another subprotocol is refused, and so is none', async () => {
  const node = await newNode()
  for (const protocol of ['muster.v2', 'chat', null]) {
    assert.deepEqual(await refusedChannel(node, { protocol }), [400, 'REQUEST_INVALID'])
  }
  const channel = await channelOf(node, { protocol: 'muster.v9, muster.v1' })
  channel.destroy()
})

test("a node cannot open the channel of another, or of one that does not exist, or under another's spelling", async () => {
  const [node, other] = [await newNode(), await newNode()]
  for (const id of [other.id(), 'nobody', `%66${node.id().slice(1)}`]) {
    const answer = await openRawChannel(node.target, node.identity(), id)
    assert.ok('status' in answer)
    assert.deepEqual([answer.status, answer.body.code], [403, 'IDENTITY_MISMATCH'])
  }
  assert.deepEqual((await record(other.id())).sessions, [])
})

test('without a certificate there is no channel, and elsewhere there is none at all', async () => {
  const node = await newNode()
  const anonymous = await openRawChannel(node.target, null, node.id())
  assert.ok('status' in anonymous)
  assert.deepEqual([anonymous.status, anonymous.body.code], [401, 'CLIENT_CERT_REQUIRED'])
  const elsewhere = await openRawChannel(node.target, node.identity(), `${node.id()}/channel/more`)
  assert.ok('status' in elsewhere)
  assert.deepEqual([elsewhere.status, elsewhere.body.code], [404, 'NOT_FOUND'])
})

test('the address of a channel asked for without an upgrade says what it wants', async () => {
  const node = await newNode()
  const { status, body } = await nodeCall(node.target, node.identity(), 'GET', `/v1/nodes/${node.id()}/channel`)
  assert.deepEqual([status, body.code], [400, 'REQUEST_INVALID'])
  assert.match(body.detail, /Upgrade: websocket/)
})
