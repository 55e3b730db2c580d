// Seed 000: which vCluster a node is in has nothing to do with its identity.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { rawNode } from '../process/raw-node.ts'
import { act, journalOf, makeToken, nodeOf, succeeded, untilMembership } from './ask-plane.ts'

const shared = sharedPlane()

test('T17: a node is moved twice, and its certificate file stays byte for byte what it was', async (t) => {
  const plane = shared()
  for (const name of ['training', 'inference']) succeeded(await plane.api('POST', '/v1/vclusters', { name }))
  const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
  await untilMembership(plane, 'gpu-001', 'active')
  const runsUnder = (vcluster: string | null): Promise<unknown> =>
    eventually(`the agent to run under ${vcluster}`, async () => {
      const file = path.join(agent.state, 'config.json')
      const config = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : null
      const { config_revision: applied } = await nodeOf(plane, 'gpu-001')
      return config !== null && config.vcluster === vcluster && applied === config.revision
    })
  await runsUnder(null)
  const certificateFile = (): string => fs.readFileSync(path.join(agent.state, 'identity.json'), 'utf8')
  // It writes down that its certificate has worked, a moment after the channel is open.
  await eventually('the first use on record', () => certificateFile().includes('"proven": true'))
  const before = { file: certificateFile(), node: await nodeOf(plane, 'gpu-001') }

  await act(plane, 'gpu-001', 'assign', { to: 'training' })
  await runsUnder('training')
  await act(plane, 'gpu-001', 'move', { to: 'inference' })
  await runsUnder('inference')
  const { code, stderr } = await plane.muster('node', 'move', 'gpu-001', '--to', 'training')
  assert.equal(code, 0, stderr)
  await runsUnder('training')

  assert.equal(certificateFile(), before.file)
  const { certificates, epoch, sessions } = await nodeOf(plane, 'gpu-001')
  assert.deepEqual([certificates, epoch], [before.node.certificates, before.node.epoch])
  // Not even its channel was exchanged.
  assert.deepEqual(sessions, before.node.sessions)
  const entries = await journalOf(plane, { node: 'gpu-001' })
  const since = entries.slice(entries.findIndex(({ type }) => type === 'node.assigned'))
  // A rehearsal of its recovery may come in between: that issues nothing.
  assert.deepEqual(
    since.map(({ type }) => type).filter((type) => type !== 'node.recoverable'),
    ['node.assigned', 'node.moved', 'node.moved'],
  )
  const serial = before.node.certificates[0].serial
  assert.deepEqual([...new Set(entries.map((entry) => entry.serial).filter((one) => one !== null))], [serial])
})

test('R-006: the answer to an enrollment says which vCluster the node is in, or none', async () => {
  const plane = shared()
  await plane.api('POST', '/v1/vclusters', { name: 'batch' })
  for (const [id, vcluster] of [
    ['e-1', 'batch'],
    ['e-2', null],
  ] as const) {
    const { secret } = await makeToken(plane, { node: id })
    if (vcluster !== null) await act(plane, id, 'assign', { to: vcluster })
    assert.equal(succeeded(await rawNode(await plane.target()).enrollByToken(secret)).vcluster, vcluster)
  }
})
