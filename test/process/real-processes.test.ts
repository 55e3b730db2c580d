// The harness itself against a real plane and a real agent: what every other test with processes relies on.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { musterCommand } from './child.ts'
import { eventually } from './eventually.ts'
import { certificateBytes, startFaultProxy } from './fault-proxy.ts'
import { rawNode } from './raw-node.ts'
import { startAgent } from './start-agent.ts'
import { startPlane } from './start-plane.ts'
import { tempFolder } from './temp-folder.ts'

test('a raw node enrolls by token, confirms, opens a channel, renews, and is cut when it is revoked', async (t) => {
  const plane = await startPlane(t, { command: musterCommand })
  const node = rawNode(await plane.target())
  const enrolled = await node.enrollByToken(await plane.token('--node', 'gpu-001'))
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  assert.equal(node.id(), 'gpu-001')
  assert.equal((await node.confirm()).status, 200)

  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  const { reply, identity } = await node.renew()
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  assert.ok(identity)
  node.use(identity)
  assert.equal((await node.confirm()).status, 200)

  const revoked = await plane.musterWith({}, 'node', 'revoke', 'gpu-001', '--reason', 'compromised')
  assert.equal(revoked.code, 0, revoked.stderr)
  await eventually('the channel to be cut', () => channel.ended(), { withinMs: 2_000 })
  assert.equal((await node.confirm()).status, 403)
})

test('a plane killed and restarted on its data has the same addresses, root and nodes', async (t) => {
  const plane = await startPlane(t, { command: musterCommand })
  const node = rawNode(await plane.target())
  await node.enrollByToken(await plane.token('--node', 'gpu-001'))
  await plane.kill9()
  const again = await plane.restart()
  assert.deepEqual([again.nodeUrl, again.rootFingerprint], [plane.nodeUrl, plane.rootFingerprint])
  assert.equal((await again.api('GET', '/v1/nodes/gpu-001')).body.membership, 'enrolled')
  assert.equal((await node.confirm()).status, 200)
  assert.deepEqual(await again.stop(), { code: 0, signal: null })
})

test('a real agent enrolls through a fault proxy that loses a reply, and goes on after a restart', async (t) => {
  const plane = await startPlane(t, { command: musterCommand })
  const proxy = await startFaultProxy(t, { host: '127.0.0.1', port: plane.nodePort })
  const join = (await plane.token('--node', 'gpu-002')).replace(`:${plane.nodePort}`, `:${proxy.port}`)
  proxy.dropReplies(1, certificateBytes)
  const agent = startAgent(t, { command: musterCommand, join })
  const isActive = async (): Promise<boolean> =>
    (await plane.api('GET', '/v1/nodes/gpu-002')).body.membership === 'active'
  await eventually(`the agent to enroll in spite of it`, isActive, { withinMs: 30_000 }).catch((error: unknown) => {
    throw new Error(agent.stderr(), { cause: error })
  })
  assert.equal(proxy.repliesDropped(), 1)
  await agent.kill9()
  const again = agent.restart()
  await eventually('the agent to say that it works', async () => (await again.status()).code === 0)
  assert.equal((await plane.api('GET', '/v1/nodes/gpu-002')).body.channel_open, true)
})

test('a plane under strace keeps its pid, and its system calls are written down', async (t) => {
  if (withPeer(t, 'strace') === null) return
  const record = path.join(tempFolder(t), 'strace')
  const plane = await startPlane(t, {
    command: musterCommand,
    wrapper: ['strace', '-D', '-f', '-e', 'trace=fsync,fdatasync', '-o', record],
  })
  await plane.token('--node', 'gpu-003')
  assert.deepEqual(await plane.stop(), { code: 0, signal: null })
  await eventually('the record of its flushes', () => /f(data)?sync\(/.test(fs.readFileSync(record, 'utf8')))
})
