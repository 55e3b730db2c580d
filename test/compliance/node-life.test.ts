// What operators do to nodes: quarantine and release, drain, decommission, and the approvals of mesh-paas.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../process/operator-call.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import {
  act,
  conditionsOf,
  journalOf,
  makeToken,
  membershipOf,
  nodeOf,
  refusal,
  succeeded,
  tokenOf,
  untilMembership,
} from './ask-plane.ts'

const shared = sharedPlane()

const muster = async (...args: string[]): Promise<Json> => {
  const { code, stdout, stderr } = await shared().muster(...args, '-o', 'json')
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

const opened = async (node: RawNode): Promise<RawChannel> => {
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  return channel
}

const active = async (id: string): Promise<RawNode> => {
  const node = rawNode(await shared().target())
  succeeded(await node.enrollByToken((await makeToken(shared(), { node: id })).secret))
  succeeded(await node.confirm())
  return node
}

test('ruling 6: quarantine denies an epoch for good: a released node comes back by a new token, in a new epoch', async () => {
  const plane = shared()
  const { secret: used } = await makeToken(plane, { node: 'q-1' })
  const node = rawNode(await plane.target())
  succeeded(await node.enrollByToken(used))
  const channel = await opened(node)
  const receipt = await muster('node', 'quarantine', 'q-1', '--reason', 'odd traffic')
  assert.equal(receipt.channels_cut, 1)
  assert.deepEqual(refusal(await node.confirm()), [403, 'NODE_QUARANTINED'])
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: 'q-1' })), [403, 'NODE_QUARANTINED'])
  assert.deepEqual(refusal(await node.enrollByToken(used)), [403, 'NODE_QUARANTINED'])

  assert.equal((await muster('node', 'release', 'q-1')).membership, 'inactive')
  assert.deepEqual(refusal(await node.confirm()), [403, 'CLIENT_CERT_DENIED'])
  assert.deepEqual(refusal(await node.enrollByToken(used)), [403, 'TOKEN_USED'])

  const back = rawNode(await plane.target())
  assert.equal(succeeded(await back.enrollByToken((await makeToken(plane, { node: 'q-1' })).secret)).epoch, 2)
  assert.equal(succeeded(await back.confirm()).membership, 'active')
  assert.deepEqual(refusal(await node.confirm()), [403, 'CLIENT_CERT_DENIED'])
  assert.equal(channel.ended(), true)
})

test('ruling 6: a token that was made before a quarantine does not work after the release', async () => {
  const plane = shared()
  const { id, secret } = await makeToken(plane, { node: 'q-2' })
  await act(plane, 'q-2', 'quarantine', { reason: 'the wrong rack' })
  const caller = rawNode(await plane.target())
  assert.deepEqual(refusal(await caller.enrollByToken(secret)), [403, 'NODE_QUARANTINED'])
  await act(plane, 'q-2', 'release')
  assert.deepEqual(refusal(await caller.enrollByToken(secret)), [403, 'TOKEN_INVALID'])
  assert.equal((await tokenOf(plane, id)).state, 'unused')
  succeeded(await caller.enrollByToken((await makeToken(plane, { node: 'q-2' })).secret))
})

test('R-022: drain keeps work away and leaves the identity alone; undrain takes it back', async () => {
  const plane = shared()
  const node = await active('drain-1')
  const scheduling = async (): Promise<string> => (await nodeOf(plane, 'drain-1')).scheduling.state
  assert.equal((await muster('node', 'drain', 'drain-1')).scheduling.state, 'drained')
  succeeded(await node.confirm())
  const { identity } = await node.renew()
  assert.ok(identity, 'a drained node renews')
  assert.deepEqual(refusal(await plane.api('POST', '/v1/nodes/drain-1/drain', {})), [409, 'NODE_STATE_CONFLICT'])
  await muster('node', 'undrain', 'drain-1')
  // Without a vCluster nothing is placed on it either way.
  assert.equal(await scheduling(), 'unavailable')
  assert.equal(await membershipOf(plane, 'drain-1'), 'active')
  const types = (await journalOf(plane, { node: 'drain-1' })).map(({ type }) => type)
  assert.deepEqual(
    types.filter((type) => /drain/.test(type)),
    ['node.draining', 'node.drained', 'node.undrained'],
  )
})

test('R-022, P3: decommission takes a drained or an idle node out, with its channel open', async () => {
  const plane = shared()
  const [drained, idle] = [await active('old-1'), await active('old-2')]
  const channels = [await opened(drained), await opened(idle)]
  await act(plane, 'old-1', 'drain')
  assert.equal((await muster('node', 'decommission', 'old-1')).channels_cut, 1)

  assert.equal((await muster('node', 'decommission', 'old-2')).channels_cut, 1)
  for (const [id, node] of [
    ['old-1', drained],
    ['old-2', idle],
  ] as const) {
    assert.equal(await membershipOf(plane, id), 'revoked')
    assert.deepEqual(refusal(await node.confirm()), [403, 'NODE_REVOKED'])
    const [{ body }] = await journalOf(plane, { node: id, type: 'host.revoked' })
    assert.equal(body.reason, 'decommissioned')
  }
  assert.deepEqual(
    channels.map((channel) => channel.ended()),
    [true, true],
  )
})

test('ruling 5: under mesh-paas a token of the domain registers one node, in the transaction that enrolls it', async () => {
  const plane = shared()
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', {})), [403, 'JOIN_METHOD_NOT_ALLOWED'])
  const { id, secret } = await makeToken(plane, { profile: 'mesh-paas' })
  const [node, other] = [rawNode(await plane.target()), rawNode(await plane.target())]
  await active('mesh-taken')
  assert.deepEqual(refusal(await node.enrollByToken(secret, { node_id: 'mesh-taken' })), [409, 'NODE_ALREADY_ENROLLED'])
  assert.equal((await tokenOf(plane, id)).state, 'unused')

  const enrolled = succeeded(await node.enrollByToken(secret, { node_id: 'mesh-01' }))
  assert.deepEqual([enrolled.node_id, enrolled.profile.name, enrolled.epoch], ['mesh-01', 'mesh-paas', 1])
  const entries = await journalOf(plane, { node: 'mesh-01' })
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['node.registered', 'host.enrolled'],
  )
  const [registered, host] = entries
  // An operation is the commit and the place in it.
  assert.equal(registered.operation.replace(/-\d+$/, ''), host.operation.replace(/-\d+$/, ''))
  assert.deepEqual([registered.actor, registered.sequence + 1], [`token:${id}`, host.sequence])

  assert.deepEqual(refusal(await other.enrollByToken(secret, { node_id: 'mesh-02' })), [403, 'TOKEN_USED'])
  assert.equal((await plane.api('GET', '/v1/nodes/mesh-02')).status, 404)
  assert.equal(succeeded(await node.enrollByToken(secret)).certificate_chain, enrolled.certificate_chain)
})

test('ruling 5: under mesh-paas a node that lapsed is let back by a person, and the plane says that it waits for one', async () => {
  const plane = shared()
  const node = rawNode(await plane.target())
  const { secret } = await makeToken(plane, { profile: 'mesh-paas' })
  const { node_id: id } = succeeded(await node.enrollByToken(secret))
  succeeded(await node.confirm())
  succeeded(await plane.api('PATCH', '/v1/domain', { set: { livenessGraceMs: 1000 } }))
  await untilMembership(plane, id, 'inactive')

  assert.deepEqual(refusal(await node.confirm()), [403, 'APPROVAL_REQUIRED'])
  assert.deepEqual(await conditionsOf(plane, id), ['needs_approval'])
  const upgrade = await node.openChannel()
  assert.ok('status' in upgrade, 'the channel was opened')
  assert.deepEqual(refusal(upgrade), [403, 'APPROVAL_REQUIRED'])
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: id })), [403, 'APPROVAL_REQUIRED'])

  await muster('node', 'approve', id)
  assert.deepEqual(await conditionsOf(plane, id), [])
  // Kept away from the sweep: with no grace at all it would be inactive again before it is looked at.
  succeeded(await plane.api('PATCH', '/v1/domain', { set: { livenessGraceMs: 300_000 } }))
  assert.equal(succeeded(await node.confirm()).membership, 'active')
  const types = (await journalOf(plane, { node: id }))
    .map(({ type }) => type)
    .filter((type) => type.startsWith('node.'))
  assert.deepEqual(types.slice(-4), ['node.lapsed', 'node.condition_raised', 'node.approved', 'node.returned'])
  assert.equal((await nodeOf(plane, id)).epoch, 1)
})
