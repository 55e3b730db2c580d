// T14: the grace keeps a node active. What has to stay active is watched until a node that left with it has lapsed, so
// that nobody has to guess how long to wait.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { startFaultProxy } from '../process/fault-proxy.ts'
import { openRawChannel, type RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { journalOf, makeToken, membershipOf, nodeOf, succeeded, untilMembership } from './ask-plane.ts'

const graceMs = 2500

const planeWithGrace = shared(async (scope) => {
  const plane = await startPlane(scope)
  const set = await plane.muster('domain', 'set', `livenessGraceMs=${graceMs}`)
  assert.equal(set.code, 0, set.stderr)
  return plane
})

const open = async (node: RawNode): Promise<RawChannel> => {
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  return channel
}

const connected = async (plane: Plane, id: string, port?: number): Promise<{ node: RawNode; channel: RawChannel }> => {
  const node = rawNode(await plane.target(port))
  succeeded(await node.enrollByToken((await makeToken(plane, { node: id })).secret))
  return { node, channel: await open(node) }
}

const lapses = (plane: Plane, id: string) => journalOf(plane, { node: id, type: 'node.lapsed' })
const untilLapsed = (plane: Plane, id: string) => untilMembership(plane, id, 'inactive')

test('T14: a channel that is cut and back within the grace leaves its node active', async () => {
  const plane = planeWithGrace()
  const [back, gone] = [await connected(plane, 'back-1'), await connected(plane, 'gone-1')]
  back.channel.destroy()
  gone.channel.destroy()
  await eventually('the plane to see both gone', async () => {
    const nodes = [await nodeOf(plane, 'back-1'), await nodeOf(plane, 'gone-1')]
    return nodes.every((node) => !node.channel_open && node.membership === 'active')
  })
  const channel = await open(back.node)
  await untilLapsed(plane, 'gone-1')
  assert.equal(await membershipOf(plane, 'back-1'), 'active')
  assert.deepEqual(await lapses(plane, 'back-1'), [])
  channel.destroy()
})

test('T14: a node gone beyond the grace is inactive, the journal says since when, and its certificate brings it back', async () => {
  const plane = planeWithGrace()
  const { node, channel } = await connected(plane, 'gone-2')
  channel.destroy()
  await untilLapsed(plane, 'gone-2')
  const [lapsed] = await lapses(plane, 'gone-2')
  const lastPresentMs = Date.parse(lapsed.body.last_present)
  assert.equal(lapsed.body.grace_ms, graceMs)
  assert.equal(lapsed.actor, 'system:liveness')
  assert.ok(Date.parse((await nodeOf(plane, 'gone-2')).since) - lastPresentMs >= graceMs)

  const back = await open(node)
  assert.equal(await membershipOf(plane, 'gone-2'), 'active')
  assert.equal((await journalOf(plane, { node: 'gone-2', type: 'node.returned' })).length, 1)
  assert.equal((await nodeOf(plane, 'gone-2')).epoch, 1)
  back.destroy()
})

test('T14: the late end of an old connection does not mark the newer one', async (t) => {
  const plane = planeWithGrace()
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: plane.nodePort })
  const { node } = await connected(plane, 'twice-1', proxy.port)
  // The network loses the old connection; the node opens another, past the trouble.
  proxy.freeze()
  const newer = await openRawChannel(await plane.target(), node.identity(), node.id())
  assert.ok('frames' in newer, JSON.stringify(newer))
  assert.equal((await nodeOf(plane, 'twice-1')).sessions.length, 2)
  const gone = await connected(plane, 'gone-3')
  proxy.cut()
  gone.channel.destroy()
  await eventually('the old session to end', async () => (await nodeOf(plane, 'twice-1')).sessions.length === 1)
  await untilLapsed(plane, 'gone-3')
  assert.equal(await membershipOf(plane, 'twice-1'), 'active')
  assert.deepEqual(await lapses(plane, 'twice-1'), [])
  assert.equal(newer.ended(), false)
  // The newer one's own end counts.
  newer.destroy()
  await untilLapsed(plane, 'twice-1')
})

test('T14: the downtime of the plane never makes a node inactive; every node gets the whole grace again', async (t) => {
  const plane = await startPlane(t)
  succeeded(await plane.api('PATCH', '/v1/domain', { set: { livenessGraceMs: graceMs } }))
  const [faithful, lost] = [await connected(plane, 'faithful-1'), await connected(plane, 'lost-1')]
  await plane.stop()
  assert.deepEqual([faithful.channel.ended(), lost.channel.ended()], [true, true])
  const stoppedMs = performance.now()
  await eventually('more than the grace to pass', () => performance.now() - stoppedMs > graceMs + 100)

  const startedMs = Date.now()
  const again = await plane.restart()
  const memberships = [await membershipOf(again, 'faithful-1'), await membershipOf(again, 'lost-1')]
  const channel = await open(faithful.node)
  // A busy machine may need more than the grace for these three calls. What lapsed then is counted from the start, too.
  const wasInTime = Date.now() - startedMs < graceMs
  if (wasInTime) assert.deepEqual(memberships, ['active', 'active'])
  await untilLapsed(again, 'lost-1')
  const [lapsed] = await lapses(again, 'lost-1')
  assert.ok(Date.parse(lapsed.body.last_present) >= startedMs, 'counted from the start of the plane')
  assert.equal(await membershipOf(again, 'faithful-1'), 'active')
  const ofFaithful = await lapses(again, 'faithful-1')
  for (const { body } of ofFaithful) assert.ok(Date.parse(body.last_present) >= startedMs)
  if (wasInTime) assert.deepEqual(ofFaithful, [])
  channel.destroy()
})
