// What a node says of itself where nobody can be asked, with real processes: agent renew, agent explain, explain CODE.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { eventually } from '../process/eventually.ts'
import { runMuster, type Ran } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const shortCode = /MX-\w{4}-\w{4}-\w{4}/

const explainCode = (plane: Pick<Plane, 'data'> | null, code: string, ...more: string[]): Promise<Ran> =>
  runMuster(
    ['explain', code, ...more],
    plane === null ? { env: { MUSTER_DATA: '/nowhere' } } : { env: { MUSTER_DATA: plane.data } },
  )

test('a node is renewed on request, and reports what is wrong when no plane answers', async (t) => {
  const plane = await startPlane(t)
  const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
  const serialOf = (): string | undefined => readStatusFile(agent.state)?.certificate?.serial
  const agentCall = (...words: string[]): Promise<Ran> => runMuster(['agent', ...words, '--state', agent.state], {})
  await eventually('it to be connected', async () => (await agent.status()).code === 0, { withinMs: 20_000 })

  const when = await agentCall('renew')
  assert.equal(when.code, 0)
  assert.match(when.stdout, /^Certificate [0-9a-f]+ is renewed in 1?\d h.*, at 2\d{3}-/)

  const before = serialOf()
  const renewed = await agentCall('renew', '--now')
  assert.equal(renewed.code, 0, renewed.stderr)
  assert.match(renewed.stdout, /^renewed: certificate [0-9a-f]+, valid until 2\d{3}-/)
  assert.notEqual(serialOf(), before)
  const well = await agentCall('explain')
  assert.match(well.stdout, /^Node gpu-001 of domain \S+, epoch 1, profile gpu-cloud;/)
  assert.match(well.stdout, /What is wrong:\n {2}Nothing: the agent is connected\.\n/)

  await plane.stop()
  const alone = await agentCall('renew', '--now')
  assert.equal(alone.code, 69, alone.stderr)
  assert.match(alone.stderr, /^error \w+: /)
  const told = await agentCall('explain')
  assert.equal(told.code, 0)
  assert.match(told.stdout, /endpoint_unreachable/)
  assert.match(told.stdout, /renewal failed: /)
  assert.match(told.stdout, /is tried again in /)
  assert.match((await agentCall('status')).stdout, shortCode)
  await agent.kill9()

  const dead = await agentCall('explain', '-o', 'json')
  const { running, code } = JSON.parse(dead.stdout) as { running: boolean; code: string }
  assert.equal(running, false)
  assert.equal((await agentCall('renew', '--now')).code, 7)

  const offline = await explainCode(null, code)
  assert.equal(offline.code, 0, offline.stderr)
  assert.match(offline.stdout, /^endpoint_unreachable at /)
  assert.match(offline.stdout, /Which node it was is not known here/)
  // Stopped without a plane: what did not go well is not said to have gone well.
  const second = agent.restart()
  await eventually('it to meet nobody', () =>
    readStatusFile(agent.state)?.troubles.some(({ place }) => place === 'channel'),
  )
  await second.stop()
  const stopped = await agentCall('explain')
  assert.match(stopped.stdout, /channel failed: endpoint_unreachable/)
  assert.doesNotMatch(stopped.stdout, /endpoint_unreachable: Resolved/)

  const again = await plane.restart()
  const named = await explainCode(again, code.toLowerCase())
  assert.match(named.stdout, /It is node gpu-001\.\n/)
  assert.match(named.stdout, /muster node explain gpu-001\n/)
  const json = JSON.parse((await explainCode(again, code, '-o', 'json')).stdout) as { nodes: string[] }
  assert.deepEqual(json.nodes, ['gpu-001'])
})

test('a mistyped code is not explained', async () => {
  for (const typed of ['MX-0000-0000-0001', 'gpu-001']) {
    const said = await explainCode(null, typed)
    assert.equal(said.code, 2)
    assert.match(said.stderr, /next: Ask for it again/)
  }
})

test('where no agent ever ran that is what is explained, and nothing of a key is ever printed', async (t) => {
  const folder = tempFolder(t)
  const said = await runMuster(['agent', 'explain', '--state', folder], {})
  assert.equal(said.code, 0)
  assert.match(said.stdout, /No agent has written its status in /)
  fs.writeFileSync(path.join(folder, 'identity.json'), '{"keyPem":"very secret"}')
  const damaged = await runMuster(['agent', 'explain', '--state', folder, '-o', 'json'], {})
  assert.equal(damaged.code, 0)
  assert.doesNotMatch(damaged.stdout, /very secret/)
  assert.match(damaged.stdout, /state_damaged/)
})
