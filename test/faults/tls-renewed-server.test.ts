// The server certificate is replaced under a running plane: by an operator's rotation, and by itself at half life. Old and
// new agents go on, and TLS stays as strict as it was at the start (ruling 14). Plane and agents share the test's clock.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openTlsConnection } from '../process/tls-connection.ts'

const day = 24 * 3_600_000

const untilConnected = (plane: Plane, agent: Agent, id: string): Promise<unknown> =>
  eventually(`${id} to be connected`, async () => (await plane.api('GET', `/v1/nodes/${id}`)).body.channel_open, {
    withinMs: 30_000,
  }).catch((error: unknown) => assert.fail(`${String(error)}\n${agent.stderr()}`))

const restarted = async (plane: Plane, agent: Agent, id: string): Promise<Agent> => {
  await agent.stop()
  await eventually(`${id} to be away`, async () => !(await plane.api('GET', `/v1/nodes/${id}`)).body.channel_open)
  const again = agent.restart()
  await untilConnected(plane, again, id)
  return again
}

const certificateOf = async (t: TestContext, plane: Plane): Promise<string | null> => {
  const connection = await openTlsConnection(t, await plane.target(), null)
  // With a request: a source whose connections lead to nothing is slowed down, and this one asks again and again.
  await connection.call('GET', '/v1/bundle')
  connection.destroy()
  return connection.serverSha256
}

const staysStrict = async (t: TestContext, plane: Plane): Promise<void> => {
  const target = await plane.target()
  const old = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const
  await assert.rejects(openTlsConnection(t, target, null, old), /protocol version/)
  const first = await openTlsConnection(t, target, null)
  assert.equal(first.protocol, 'TLSv1.3')
  assert.equal((await first.call('GET', '/v1/bundle')).status, 200)
  assert.ok(first.sessions().length > 0)
  for (const session of first.sessions()) {
    assert.equal((await openTlsConnection(t, target, null, { session })).reused, false)
  }
}

test('after a rotation and after a renewal at half life old and new agents connect, and TLS is as strict as before', async (t) => {
  const library = withPeer(t, 'faketime')
  if (library === null) return
  // From the past towards now, so that what the plane presents is always valid to this process too.
  const time = openFakeTime(tempFolder(t), library, -47 * day)
  const { env } = time
  const plane = await startPlane(t, { env })
  // Ninety days: it outlives the step of the clock below without a renewal of its own.
  const join = async (id: string): Promise<Agent> =>
    startAgent(t, { env, join: await plane.token('--node', id, '--profile', 'mesh-paas') })

  let oldest = await join('gpu-001')
  await untilConnected(plane, oldest, 'gpu-001')
  const raw = await activeNode(plane, 'gpu-002', 'mesh-paas')
  const atFirst = await certificateOf(t, plane)

  const rotated = await plane.muster('ca', 'rotate')
  assert.equal(rotated.code, 0, rotated.stderr)
  const afterRotation = await certificateOf(t, plane)
  assert.notEqual(afterRotation, atFirst)
  await staysStrict(t, plane)
  assert.equal((await raw.confirm()).status, 200, 'a certificate of the issuer before works on')
  oldest = await restarted(plane, oldest, 'gpu-001')
  await untilConnected(plane, await join('gpu-003'), 'gpu-003')

  time.advance(46 * day)
  await eventually('a renewal at half life', async () => (await certificateOf(t, plane)) !== afterRotation, {
    withinMs: 20_000,
  })
  await staysStrict(t, plane)
  await restarted(plane, oldest, 'gpu-001')
  await untilConnected(plane, await join('gpu-004'), 'gpu-004')
  assert.ok(plane.running())
})
