// Machines that have nothing to recover with, and how they come by it: the agent in this process, the plane in its own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { AgentStep } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { Credentials, Identity } from '#agent/state/credentials.ts'
import { openNudging } from '#agent/core/pause.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { connected } from './agent-recovery-setup.ts'

const domain = shared((scope) => startPlane(scope))

const kept = ({ stateFolder }: AgentConfig): Credentials =>
  JSON.parse(fs.readFileSync(path.join(stateFolder, 'identity.json'), 'utf8')) as Credentials
const identityOf = (config: AgentConfig): Identity => kept(config).identity ?? assert.fail('no identity')

const start = async (t: TestContext, plane: Plane, config: AgentConfig, id: string) => {
  const nudging = openNudging()
  /** What was on the disk when a renewal was about to be sent. */
  const requests: Credentials['request'][] = []
  const reached = (step: AgentStep): void =>
    void (step === 'renew: request kept' && requests.push(kept(config).request))
  const agent = runTestAgent(t, config, 0, undefined, { nudge: nudging.nudge, reached })
  await connected(plane, id, 1)
  return { agent, requests, renewNow: nudging.fire }
}

const configFor = async (
  t: TestContext,
  plane: Plane,
  id: string,
  change: Partial<AgentConfig>,
): Promise<AgentConfig> => {
  const join = parseJoinString(await plane.token('--node', id)) ?? assert.fail('no join string')
  return testAgentConfig(t, join, change)
}

const untilHas = (config: AgentConfig, kind: string): Promise<unknown> =>
  eventually(`a credential of kind ${kind}`, () => identityOf(config).recovery?.credential.kind === kind, {
    withinMs: 30_000,
  })

const registeredBy = async (plane: Plane, node: string): Promise<unknown[]> =>
  (await journalEntries(plane, { node, type: 'node.renewed' })).map(({ body }) => body['registered'])

for (const recovery of ['key', 'bearer'] as const) {
  test(`an agent whose profile changes to recovery by ${recovery} registers that with its next renewal`, async (t) => {
    const plane = domain()
    const id = `late-${recovery}`
    const config = await configFor(t, plane, id, { recovery: 'none' })
    await (await start(t, plane, config, id)).agent.stop()
    assert.equal(identityOf(config).recovery?.credential.kind, 'none')

    const { requests, renewNow } = await start(t, plane, { ...config, recovery }, id)
    renewNow()
    await untilHas(config, recovery)
    assert.deepEqual(await registeredBy(plane, id), [recovery])
    const { credential } = identityOf(config).recovery ?? assert.fail()
    if (credential.kind === 'key') assert.equal(requests[0]?.recoveryKey?.keyPem, credential.keyPem)
    renewNow()
    await eventually('another renewal', async () => (await registeredBy(plane, id)).length === 2)
    assert.deepEqual(await registeredBy(plane, id), [recovery, null])
  })
}

test('a node of an older agent and plane learns that it may register, and renews once more for it', async (t) => {
  const plane = domain()
  const config = await configFor(t, plane, 'of-before', { recovery: 'none' })
  await (await start(t, plane, config, 'of-before')).agent.stop()
  const understands = identityOf(config).understands.filter((field) => field !== 'renewal_recovery')
  const before = { ...kept(config), identity: { ...identityOf(config), understands, recovery: null } }
  fs.writeFileSync(path.join(config.stateFolder, 'identity.json'), JSON.stringify({ version: 1, ...before }))

  const { renewNow } = await start(t, plane, { ...config, recovery: 'key' }, 'of-before')
  renewNow()
  await untilHas(config, 'key')
  assert.deepEqual(await registeredBy(plane, 'of-before'), [null, 'key'])
})

test('what a copy holds too is dropped when an operator settles who is right, and the agent registers another', async (t) => {
  const plane = domain()
  const config = await configFor(t, plane, 'copied', {})
  const { renewNow } = await start(t, plane, config, 'copied')
  const former = identityOf(config).recovery?.credential
  const copy = { ...config, stateFolder: path.join(tempFolder(t), 'copy') }
  fs.cpSync(config.stateFolder, copy.stateFolder, { recursive: true })
  const copied = runTestAgent(t, copy)
  const conditions = async (): Promise<string[]> =>
    ((await plane.api('GET', '/v1/nodes/copied')).body as { conditions: { name: string }[] }).conditions.map(
      ({ name }) => name,
    )
  await eventually('the copy to be noticed', async () => (await conditions()).includes('duplicate_identity'))
  await copied.stop()
  const settled = await plane.muster('node', 'settle', 'copied', '--reason', 'the copy was wiped')
  assert.equal(settled.code, 0, settled.stderr)
  assert.ok(!(await conditions()).includes('duplicate_identity'))

  renewNow()
  await eventually('another key', async () => (await registeredBy(plane, 'copied')).includes('key'), {
    withinMs: 30_000,
  })
  await untilHas(config, 'key')
  assert.notDeepEqual(identityOf(config).recovery?.credential, former)
  assert.deepEqual(await registeredBy(plane, 'copied'), [null, 'key'])
})
