// What a call to the plane carries besides its body, and what the agent takes from the answer besides its value.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Identity } from '#agent/state/credentials.ts'
import { callPlane, type CallingAgent } from '#agent/link/plane-client.ts'
import { readMachineId } from '#platform/hardware.ts'
import { isoTime, systemClock } from '#platform/clock.ts'
import { evidenceHeader, parseEvidence } from '#wire/core/agent-evidence.ts'
import { identityApi } from '#wire/identity/identity-api.ts'
import { connectingAgent, type TestConnectingAgent } from '../fakes/connecting-agent.ts'
import { pinned, startDatedPlane, timesAt, type DatedPlane, type Times } from '../fakes/dated-plane.ts'
import { testAgentConfig } from '../fakes/test-agent.ts'

const day = 86_400_000
const now = timesAt(systemClock.nowMs())

const identityOf = (plane: DatedPlane, times: Times, change: Partial<Identity> = {}): Identity => ({
  nodeId: 'gpu-001',
  domain: 'example.test',
  epoch: 1,
  profile: {
    name: 'gpu-cloud',
    key_storage: 'file',
    key_types: ['p256'],
    lifetime_ms: day,
    renew_from: 0.5,
    renew_to: 0.6,
  },
  endpoints: { id: 'runtime', revision: 1, runtime: [plane.url.origin], stream: [plane.url.origin] },
  roots: times.trust.kind === 'roots' ? times.trust.roots : [],
  trustRevision: 0,
  withdrawnIssuers: [],
  issuerRoots: { revision: 0, roots: [] },
  graceMs: 300_000,
  understands: ['counter', 'evidence'],
  marked: false,
  origin: { url: plane.url.origin, rootFingerprint: '', usedSecretHash: null },
  source: 'plane',
  counter: null,
  recovery: {
    trust: { roots: [], statement_keys: pinned.statementKeys },
    credential: { kind: 'none' },
  },
  clockToleranceMs: 300_000,
  current: {
    keyPem: times.client.keyPem,
    chainPem: times.client.certPem,
    rootPem: null,
    serial: '01',
    proven: true,
    issuedAtMs: times.atMs,
    notAfterMs: times.atMs + day,
  },
  previous: null,
  ...change,
})

type TestCallingAgent = CallingAgent & TestConnectingAgent

const callingAgent = (t: TestContext, identity: Identity): TestCallingAgent => {
  const agent = connectingAgent(t)
  agent.keeper.keep({ identity, request: null })
  const join = { url: identity.origin.url, domain: 'example.test', rootFingerprint: '', secret: null, marked: false }
  const config = testAgentConfig(t, join, {})
  return { ...agent, config, instance: 'i'.repeat(22), signal: new AbortController().signal }
}

const confirm = { endpoint: identityApi.confirm, json: { persisted: true } }

const confirmedAt = (plane: DatedPlane, atMs: number): void => {
  plane.answer = { node_id: 'gpu-001', membership: 'active', server_time: isoTime(atMs) }
}

test('a call carries evidence of the process and the machine, and nothing that names the machine elsewhere', async (t) => {
  const plane = await startDatedPlane(t, now)
  confirmedAt(plane, systemClock.nowMs())
  const identity = identityOf(plane, now)
  assert.equal((await callPlane(callingAgent(t, identity), identity, confirm)).kind, 'answer')
  const header = plane.calls[0]?.headers[evidenceHeader]
  const evidence = parseEvidence(typeof header === 'string' ? header : undefined)
  assert.equal(evidence?.instance, 'i'.repeat(22))
  assert.equal(evidence?.machine === null, readMachineId() === null)
  const id = readMachineId()
  assert.ok(id === null || !Buffer.from(String(header), 'base64url').toString('utf8').includes(id))
})

test('a plane that does not understand evidence is sent none', async (t) => {
  const plane = await startDatedPlane(t, now)
  confirmedAt(plane, systemClock.nowMs())
  const identity = identityOf(plane, now, { understands: [] })
  await callPlane(callingAgent(t, identity), identity, confirm)
  assert.equal(plane.calls[0]?.headers[evidenceHeader], undefined)
})

test('an answer is an exchange, and a clock that agrees with it is left alone', async (t) => {
  const plane = await startDatedPlane(t, now)
  confirmedAt(plane, systemClock.nowMs() + 60_000)
  const identity = identityOf(plane, now)
  const agent = callingAgent(t, identity)
  await callPlane(agent, identity, confirm)
  assert.notEqual(agent.record.now().figures.lastExchangeMs, null)
  assert.deepEqual([agent.clock.offsetMs(), agent.troubles.size], [0, 0])
})

for (const minutes of [-10, 10]) {
  test(`a clock that is ${-minutes} min off the plane's is judged from the first answer on`, async (t) => {
    const plane = await startDatedPlane(t, now)
    confirmedAt(plane, systemClock.nowMs() + minutes * 60_000)
    const identity = identityOf(plane, now)
    const agent = callingAgent(t, identity)
    await callPlane(agent, identity, confirm)
    assert.ok(Math.abs(agent.clock.offsetMs() - minutes * 60_000) < 30_000)
    assert.equal(agent.troubles.get('clock')?.class, 'clock_skew')
    confirmedAt(plane, systemClock.nowMs())
    await callPlane(agent, identity, confirm)
    assert.deepEqual([agent.clock.offsetMs(), agent.record.now().figures.clockSkewMs, agent.troubles.size], [0, 0, 0])
  })
}

test('a plane of ten years ago is called by an agent of today, with the keys it pinned', async (t) => {
  const then = timesAt(systemClock.nowMs() - 3650 * day)
  const plane = await startDatedPlane(t, then)
  confirmedAt(plane, then.atMs)
  const identity = identityOf(plane, then)
  const agent = callingAgent(t, identity)
  assert.equal((await callPlane(agent, identity, confirm)).kind, 'answer')
  assert.deepEqual(
    plane.calls.map(({ path, shown }) => [path, shown]),
    [
      ['/v1/challenge', false],
      ['/v1/nodes/gpu-001/confirm', true],
    ],
  )
})
