// A certificate that has expired or was withdrawn opens nothing: not on a new connection, not on one that is open, not
// on a channel, and not by a TLS session from better days. The clock of the plane is the test's.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime, type FakeTime } from '../process/fake-time.ts'
import type { Reply } from '../process/operator-call.ts'
import type { RawChannel } from '../process/raw-channel.ts'
import type { RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openTlsConnection, type TlsConnection } from '../process/tls-connection.ts'

const day = 24 * 3_600_000

type InTime = { readonly plane: Plane; readonly time: FakeTime }

const planeInTime = async (t: TestContext): Promise<InTime | null> => {
  const library = withPeer(t, 'faketime')
  if (library === null) return null
  // From the past towards now, so that what the plane presents is always valid to this process too.
  const time = openFakeTime(tempFolder(t), library, -18 * day)
  return { plane: await startPlane(t, { env: time.env, args: ['--server-lifetime', '30d'] }), time }
}

const channelOf = async (node: RawNode): Promise<RawChannel> => {
  // It neither answers pings nor closes: whatever ends it is the plane's doing.
  const channel = await node.openChannel({ pings: 'ignored', closes: 'ignored' })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  return channel
}

const code = ({ status, body }: Pick<Reply, 'status' | 'body'>): string => `${status} ${body.code ?? ''}`.trim()
const confirmPath = (node: RawNode): string => `/v1/nodes/${node.id()}/confirm`

/** Every address a certificate opens, each on a connection of its own. The server's certificate may be of another time. */
const refusedEverywhere = async (t: TestContext, node: RawNode, expected: string): Promise<void> => {
  for (const [method, path, body] of [
    ['POST', confirmPath(node), {}],
    ['POST', `/v1/nodes/${node.id()}/renew`, { csr: node.csr }],
  ] as const) {
    const connection = await openTlsConnection(t, node.target, node.identity())
    assert.equal(code(await connection.call(method, path, body)), expected, path)
  }
  const channel = await openTlsConnection(t, node.target, node.identity())
  assert.equal(code(await channel.upgrade(`/v1/nodes/${node.id()}/channel`)), expected)
}

/** Every session a connection was given, offered again: taken up by none, and no way around the refusal. */
const refusedOnResumption = async (t: TestContext, node: RawNode, before: TlsConnection, expected: string) => {
  assert.ok(before.sessions().length > 0)
  for (const session of before.sessions()) {
    const again = await openTlsConnection(t, node.target, node.identity(), { session })
    assert.equal(again.reused, false)
    assert.equal(code(await again.call('POST', confirmPath(node), {})), expected)
  }
}

const serverSha256 = async (t: TestContext, node: RawNode): Promise<string | null> => {
  const connection = await openTlsConnection(t, node.target, null)
  // With a request: a source whose connections lead to nothing is slowed down, and this one asks again and again.
  await connection.call('GET', '/v1/bundle')
  connection.destroy()
  return connection.serverSha256
}

/** From shortly before its expiry to that moment: whatever was open or kept from before is worth nothing after it. */
const expire = async (t: TestContext, { plane, time }: InTime, node: RawNode, channel: RawChannel): Promise<void> => {
  const { body } = await plane.api('GET', `/v1/nodes/${node.id()}`)
  // A TLS session lives for minutes, so one that is to be offered again has to be young.
  time.advance(Date.parse(body.cert_not_after) - time.nowMs() - 30_000)
  const kept = await openTlsConnection(t, node.target, node.identity())
  assert.equal(code(await kept.call('POST', confirmPath(node), {})), '200')
  assert.equal(channel.ended(), false)

  time.advance(30_000)
  assert.equal(code(await kept.call('POST', confirmPath(node), {})), '401 CLIENT_CERT_EXPIRED')
  await refusedOnResumption(t, node, kept, '401 CLIENT_CERT_EXPIRED')
  await refusedEverywhere(t, node, '401 CLIENT_CERT_EXPIRED')
  await eventually('the sweep to end the channel', () => channel.ended(), { withinMs: 5_000 })
}

test('at its expiry a certificate stops working: on connections, its channel and resumption, before and after a renewal of the server', async (t) => {
  const its = await planeInTime(t)
  if (its === null) return
  const { plane, time } = its
  const set = { 'certificate.lifetimeMs': 20 * day }
  assert.equal((await plane.api('POST', '/v1/profiles', { name: 'longer', set })).status, 201)
  const [soon, later] = [await activeNode(plane, 'gpu-001'), await activeNode(plane, 'gpu-002', 'longer')]
  const [soonChannel, laterChannel] = [await channelOf(soon), await channelOf(later)]
  await expire(t, its, soon, soonChannel)

  const presented = await serverSha256(t, later)
  time.advance(16 * day)
  await eventually('a new server certificate', async () => (await serverSha256(t, later)) !== presented, {
    withinMs: 15_000,
  })
  await refusedEverywhere(t, soon, '401 CLIENT_CERT_EXPIRED')
  await expire(t, its, later, laterChannel)
})

/** It was fine until then. */
const revoke = async (t: TestContext, plane: Plane, id: string): Promise<RawNode> => {
  const node = await activeNode(plane, id)
  const kept = await openTlsConnection(t, node.target, node.identity())
  assert.equal(code(await kept.call('POST', confirmPath(node), {})), '200')
  const channel = await channelOf(node)

  assert.equal((await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'compromised' })).status, 200)
  await eventually('the channel to end', () => channel.ended(), { withinMs: 1_000, everyMs: 5 })
  assert.equal(code(await kept.call('POST', confirmPath(node), {})), '403 NODE_REVOKED')
  await refusedEverywhere(t, node, '403 NODE_REVOKED')
  await refusedOnResumption(t, node, kept, '403 NODE_REVOKED')
  return node
}

test('a revocation ends the channel within a second and opens nothing again, before and after a renewal of the server', async (t) => {
  const plane = await startPlane(t)
  const first = await revoke(t, plane, 'gpu-001')
  const presented = await serverSha256(t, first)
  assert.equal((await plane.muster('ca', 'rotate')).code, 0)
  assert.notEqual(await serverSha256(t, first), presented)
  await refusedEverywhere(t, first, '403 NODE_REVOKED')
  await revoke(t, plane, 'gpu-002')
})
