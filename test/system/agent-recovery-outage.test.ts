// A plane that is away for longer than certificates last: every node comes back by itself after it returns.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { briefProfile, connected, identityOf, troubleAt } from './agent-recovery-setup.ts'

test('agents whose certificates expired while the plane was down recover without an operator', async (t) => {
  const plane = await startPlane(t)
  await briefProfile(plane, 'brief')
  const agents = await Promise.all(
    ['down-1', 'down-2'].map(async (id) => ({
      id,
      agent: startAgent(t, { join: await plane.token('--node', id, '--profile', 'brief') }),
    })),
  )
  await Promise.all(agents.map(({ id }) => connected(plane, id, 1)))
  await plane.kill9()
  for (const { agent } of agents) {
    const { notAfterMs } = identityOf(agent).current
    await eventually('its certificate to be over', () => Date.now() > notAfterMs, { withinMs: 15_000 })
    const status = await troubleAt(agent, 'recovery', 'endpoint_unreachable')
    assert.ok(status.troubles.every(({ code }) => code !== 'no_way_back'))
  }
  const again = await plane.restart()
  await Promise.all(agents.map(({ id }) => connected(again, id, 2, 90_000)))
})
