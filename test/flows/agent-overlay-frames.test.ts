// What an agent says of its overlay, and to which planes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Value } from 'typebox/value'
import { keptIdentity } from '../process/kept-credentials.ts'
import { AgentFrame } from '#wire/channel/channel.ts'
import { CapabilityReportBody } from '#wire/node/node-runs.ts'
import { startSmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'

const policy = { enforcement_mode: 'observe', exec_whitelist: [], shell_whitelist: [], regulated: false }

test('only a plane that offers overlays gets overlay reports: all of it once after every hello, and then changes', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  const on = (channel: number, type: string): Record<string, unknown>[] =>
    (small.channels[channel]?.frames ?? []).filter((frame) => frame.type === type).map(({ body }) => body)
  await eventually('a channel', () => on(0, 'hello').length === 1)
  const endpoints = keptIdentity(config.stateFolder)?.endpoints
  const files = [{ path: 'etc/motd', mode: 0o644, content: 'hello\n' }]
  const overlay = { vcluster_revision: 4, policy, files, services: [], detect_drift: true }
  const said = { vcluster: 'training', profile: small.profile, endpoints, wireguard: null }
  small.sendOn(0, 'config', { revision: 7, ...said, overlay })
  await eventually('its answer', () => on(0, 'applied').length === 1)

  small.capabilities = ['overlay']
  small.channels[0]?.socket.close()
  await eventually('both frames', () => on(1, 'overlay_state').length === 1 && on(1, 'capabilities').length === 1)
  assert.deepEqual([on(0, 'overlay_state'), on(0, 'capabilities')], [[], []])
  const state = { config_revision: 7, applied: true, detail: null, services: [], drift: [] }
  assert.deepEqual(on(1, 'overlay_state'), [state])
  assert.ok(Value.Check(CapabilityReportBody, on(1, 'capabilities')[0]))
  assert.equal(on(1, 'capabilities')[0]?.['vcluster'], 'training')

  small.sendOn(1, 'config', {
    revision: 8,
    ...said,
    vcluster: null,
    overlay: { ...overlay, files: [], detect_drift: false },
  })
  await eventually('the next state', () => on(1, 'overlay_state').length === 2 && on(1, 'capabilities').length === 2)
  assert.deepEqual(on(1, 'overlay_state')[1], { ...state, config_revision: 8 })
  assert.equal(on(1, 'capabilities')[1]?.['vcluster'], null)
  assert.ok(small.channels.flatMap(({ frames }) => frames).every((frame) => Value.Check(AgentFrame, frame)))
})

test('a plane of 0.3 hears that a service fails, and only one that offers the details hears why, and of checks', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  small.capabilities = ['overlay']
  const config = testAgentConfig(t, small.join, {})
  runTestAgent(t, config)
  const on = (channel: number, type: string): Record<string, unknown>[] =>
    (small.channels[channel]?.frames ?? []).filter((frame) => frame.type === type).map(({ body }) => body)
  await eventually('a channel', () => on(0, 'hello').length === 1)
  assert.deepEqual(on(0, 'hello')[0]?.['capabilities'], ['outputs', 'issuer-roots', 'service_terms', 'health_checks'])
  const endpoints = keptIdentity(config.stateFolder)?.endpoints
  const overlay = {
    ...{ vcluster_revision: 4, policy, files: [], detect_drift: true },
    services: [{ name: 'worker', command: ['/nope/bin'] }],
    checks: [{ name: 'disks', command: ['/nope/check'], interval_ms: 60_000, timeout_ms: 1_000 }],
  }
  small.sendOn(0, 'config', { revision: 7, vcluster: 'training', profile: small.profile, endpoints, overlay })
  const failed = (body: Record<string, unknown>): boolean => JSON.stringify(body).includes('"failed"')
  await eventually('the failure', () => on(0, 'overlay_state').some(failed))
  for (const { services, checks } of on(0, 'overlay_state') as { services: object[]; checks?: unknown }[]) {
    assert.equal(checks, undefined)
    for (const service of services) assert.deepEqual(Object.keys(service), ['name', 'state', 'restarts'])
  }
  small.capabilities = ['overlay', 'overlay_details']
  small.channels[0]?.socket.close()
  await eventually('all of it', () => {
    const text = JSON.stringify(on(1, 'overlay_state').at(-1) ?? null)
    return /"error":"could not be started: .*ENOENT"/.test(text) && /"name":"disks","state":"failed"/.test(text)
  })
  assert.ok(small.channels.flatMap(({ frames }) => frames).every((frame) => Value.Check(AgentFrame, frame)))
})
