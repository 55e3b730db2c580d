// Seed 002, compliance tests 7 to 9: the audit trail, mTLS after an enrollment, and an enrollment that got stuck halfway.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { certificateBytes, startFaultProxy } from '../process/fault-proxy.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { act, journalOf, makeToken, membershipOf, nodeOf, refusal, succeeded, untilMembership } from './ask-plane.ts'

const shared = sharedPlane()
const isTime = (text: unknown): boolean => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(String(text))
const slow = { withinMs: 20_000 }

/** Of every entry, whatever it is about. */
const envelope = [
  'schema',
  'domain',
  'operation',
  'type',
  'actor',
  'source',
  'node',
  'epoch',
  'token',
  'issuer',
  'serial',
]

test('002-7: the audit log contains all required fields', async () => {
  const plane = shared()
  const { id, secret } = await makeToken(plane, { node: 'audit-1' })
  const node = rawNode(await plane.target())
  succeeded(await node.enrollByToken(secret))
  const revoked = await plane.muster('node', 'revoke', 'audit-1', '--reason', 'compromised')
  assert.equal(revoked.code, 0, revoked.stderr)

  // Read as an operator reads it.
  const listed = await plane.muster('journal', 'list', '--node', 'audit-1', '-o', 'json')
  assert.equal(listed.code, 0, listed.stderr)
  const entries: Json[] = JSON.parse(listed.stdout).entries.map(({ entry }: Json) => entry)
  const only = (type: string): Json => {
    const found = entries.filter((entry) => entry.type === type)
    assert.equal(found.length, 1, type)
    for (const field of envelope) assert.ok(field in found[0], `${type} has ${field}`)
    assert.ok(isTime(found[0].body.timestamp), `${type} has a timestamp`)
    return found[0]
  }

  const created = only('enrollment_token.created')
  assert.deepEqual(
    [created.body.token_id, created.body.created_by, isTime(created.body.expires_at), created.token],
    [id, 'operator:admin', true, id],
  )

  const enrolled = only('host.enrolled')
  const certificate = new X509Certificate(node.identity().chainPem)
  const { timestamp: _at, ...body } = enrolled.body
  assert.partialDeepStrictEqual(body, {
    host_id: 'audit-1',
    token_id: id,
    enrolled_by: 'system:enrollment-service',
    // It brought no WireGuard key; wireguard-peers.test.ts has one that does.
    underlay_endpoint: null,
    wireguard_pubkey_fingerprint: null,
    mtls_cert_fingerprint: `SHA256:${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
  })
  assert.deepEqual(
    [enrolled.node, enrolled.epoch, enrolled.token, enrolled.serial, enrolled.source],
    ['audit-1', 1, id, certificate.serialNumber.toLowerCase().replace(/^0+/, ''), '127.0.0.1'],
  )

  const { body: gone } = only('host.revoked')
  assert.deepEqual([gone.host_id, gone.revoked_by, gone.reason], ['audit-1', 'operator:admin', 'compromised'])
  assert.equal((await plane.muster('journal', 'verify')).code, 0)
  assert.doesNotMatch(listed.stdout, new RegExp(secret))
})

test('002-8: mTLS communication works after enrollment, for the agent and with the certificate alone', async (t) => {
  const plane = shared()
  const agent = startAgent(t, { join: (await makeToken(plane, { node: 'mtls-1' })).join })
  await eventually('the agent to be connected', async () => (await nodeOf(plane, 'mtls-1')).channel_open, slow)
  await eventually('the agent to say so', async () => (await agent.status()).code === 0, slow)

  const node = rawNode(await plane.target())
  succeeded(await node.enrollByToken((await makeToken(plane, { node: 'mtls-2' })).secret))
  assert.equal(await membershipOf(plane, 'mtls-2'), 'enrolled')
  assert.deepEqual(refusal(await nodeCall(node.target, null, 'POST', '/v1/nodes/mtls-2/confirm', {})), [
    401,
    'CLIENT_CERT_REQUIRED',
  ])
  assert.deepEqual(refusal(await node.call('POST', '/v1/nodes/mtls-1/confirm', {})), [403, 'IDENTITY_MISMATCH'])
  assert.equal(await membershipOf(plane, 'mtls-2'), 'enrolled')
  assert.equal(succeeded(await node.confirm()).membership, 'active')
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  channel.destroy()
})

/** The plane has enrolled the node; its machine died before the answer reached it, and nothing of it is left. */
const leftEnrolled = async (t: TestContext, id: string): Promise<void> => {
  const plane = shared()
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: plane.nodePort })
  const { join } = await makeToken(plane, { node: id })
  proxy.dropReplies(Infinity, certificateBytes)
  const agent = startAgent(t, { join: join.replace(`:${plane.nodePort}`, `:${proxy.port}`) })
  await eventually('the answer to be lost', () => proxy.repliesDropped() > 0, slow)
  await agent.kill9()
  assert.equal(await membershipOf(plane, id), 'enrolled')
}

test('002-9: a partial enrollment is recovered by revoking, registering anew and a new token', async (t) => {
  const plane = shared()
  await leftEnrolled(t, 'partial-1')
  await act(plane, 'partial-1', 'revoke', { reason: 'the machine died while it enrolled' })
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: 'partial-1' })), [403, 'NODE_REVOKED'])
  succeeded(await plane.api('POST', '/v1/nodes', { id: 'partial-1' }))
  startAgent(t, { join: (await makeToken(plane, { node: 'partial-1' })).join })
  await untilMembership(plane, 'partial-1', 'active', slow)
  assert.equal((await nodeOf(plane, 'partial-1')).epoch, 2)
})

test('002-9: a partial enrollment is also recovered by a new token alone', async (t) => {
  const plane = shared()
  await leftEnrolled(t, 'partial-2')
  startAgent(t, { join: (await makeToken(plane, { node: 'partial-2' })).join })
  await untilMembership(plane, 'partial-2', 'active', slow)
  assert.equal((await nodeOf(plane, 'partial-2')).epoch, 2)
  const [superseded] = await journalOf(plane, { node: 'partial-2', type: 'node.superseded' })
  assert.deepEqual([superseded.epoch, superseded.body.was], [1, 'enrolled'])
})
