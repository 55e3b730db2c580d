// A profile goes to another issuer while there are machines with the agent of 0.6, the last that knows no set of roots (ruling 27).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MigrationView } from '#wire/issuers/migration-api.ts'
import { nodeOf, refusal, succeeded } from '../compliance/ask-plane.ts'
import { addStepCa, passTest } from '../peers/added-issuers.ts'
import { withPeer } from '../peers/peer.ts'
import { startStepCa } from '../peers/step-ca.ts'
import { startedCommand } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { commandOf, releaseNamed } from './previous-release.ts'

const release = releaseNamed('0.6.0')
const commandBefore = commandOf(release)
const profile = 'moving'

test(`agents of ${release.version} are named in a migration, stay with the old issuer, and are taken along once they are upgraded`, async (t) => {
  const binary = withPeer(t, 'step-ca')
  const command = await commandBefore(t)
  if (binary === null || command === null) return
  const [server, plane] = await Promise.all([startStepCa(t, binary), startPlane(t)])
  const corp = await addStepCa(plane, server, 'corp')
  succeeded(await plane.api('POST', '/v1/profiles', { name: profile, from: 'gpu-cloud' }))
  await passTest(plane, corp, profile)

  const start = async (id: string, more: { readonly command?: string } = {}): Promise<Agent> =>
    startAgent(t, { ...more, join: await plane.token('--node', id, '--profile', profile) })
  const connected = (id: string): Promise<unknown> =>
    eventually(
      `${id} to be active and connected`,
      async () => {
        const { membership, channel_open: open } = await nodeOf(plane, id)
        return membership === 'active' && open === true
      },
      { withinMs: 60_000 },
    )
  const serialOf = async (id: string): Promise<string> =>
    (await nodeOf(plane, id)).certificates.find(({ slot }: Json) => slot === 'current').serial
  const renewNow = async (id: string, { state }: Agent): Promise<void> => {
    const before = await serialOf(id)
    const { code, stderr } = await plane.muster('agent', 'renew', '--now', '--state', state)
    assert.equal(code, 0, stderr)
    await eventually(`${id} to have another certificate`, async () => (await serialOf(id)) !== before)
  }
  const at = `/v1/issuer-migrations/${profile}`
  const ask = (step = '', body: object = {}) => plane.api('POST', `${at}${step}`, body)
  const progress = async () => {
    const view: MigrationView = succeeded(await plane.api('GET', at))
    return view.progress ?? assert.fail('it is over')
  }

  const old = await start('old-1', { command })
  const current = await start('new-1')
  await connected('old-1')
  await connected('new-1')
  succeeded(await ask('', { to: 'corp' }))
  await eventually('the new agent to confirm', async () => (await progress()).unconfirmed.join() === 'old-1')
  assert.deepEqual((await progress()).older_agents, ['old-1'])
  const early = await ask('/share', { percent: 100 })
  assert.deepEqual(refusal(early), [409, 'MIGRATION_NOT_READY'])
  assert.match(early.body.detail, /old-1/)
  succeeded(await ask('/exclude', { nodes: ['old-1'] }))
  succeeded(await ask('/share', { percent: 100 }))
  await renewNow('old-1', old)
  await renewNow('new-1', current)
  assert.equal((await progress()).moved, 1, 'the one that has confirmed')

  // It needs no set for a certificate of its own: the answer has the root above it.
  const other = await start('old-2', { command })
  await connected('old-2')
  assert.equal((await progress()).moved, 2)
  await renewNow('old-2', other)
  assert.equal((await progress()).moved, 1, 'a renewal that says no revision stays with the issuer before')

  await old.stop()
  await other.stop()
  const upgraded = [old, other].map((agent) => agent.restart({ command: startedCommand }))
  await connected('old-1')
  await connected('old-2')
  await eventually('both to confirm', async () => (await progress()).unconfirmed.length === 0, { withinMs: 30_000 })
  succeeded(await ask('/finish'))
  const excluded = await ask('/retire')
  assert.deepEqual(refusal(excluded), [409, 'MIGRATION_NOT_READY'])
  assert.match(excluded.body.detail, /old-1/)
  succeeded(await ask('/include', { nodes: ['old-1'] }))
  for (const [index, agent] of upgraded.entries()) await renewNow(`old-${index + 1}`, agent)
  assert.equal((await progress()).moved, 3)
  for (const id of ['old-1', 'old-2', 'new-1']) {
    const { membership, epoch, conditions } = await nodeOf(plane, id)
    assert.deepEqual([membership, epoch, conditions], ['active', 1, []], id)
  }
})
