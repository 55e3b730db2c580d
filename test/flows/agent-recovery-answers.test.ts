// What the plane answers to a recovery or a renewal is checked before it takes the place of anything, over real TLS.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { withRequest, type Identity } from '#agent/state/credentials.ts'
import { renewWithin } from '#agent/identity/renew.ts'
import { openBearerTurns } from '#agent/recovery/bearer-turns.ts'
import { recoverOnce } from '#agent/recovery/recover-once.ts'
import type { WayBack } from '#agent/recovery/way-back.ts'
import { trouble } from '#agent/core/trouble.ts'
import { systemTimers } from '#platform/timers.ts'
import { isoTime, systemClock } from '#platform/clock.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { generateKey } from '#pki/keys.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import { pinned, startDatedPlane, statementOf, timesAt, type DatedPlane } from '../fakes/dated-plane.ts'
import { testAgentConfig } from '../fakes/test-agent.ts'
import type { Scope } from '../process/cleanup.ts'

const now = timesAt(systemClock.nowMs())
const roots = now.trust.kind === 'roots' ? now.trust.roots : []
const key = generateKey('p256')
const story = { correlation: 'x', sinceMs: 0, trouble: trouble('cert_expired', 'Expired.', 'Nothing') }
const join = { url: 'https://localhost', domain: 'example.test', rootFingerprint: '', secret: null, marked: false }

const counterOf = (node: string): string =>
  formatStatement('counter', { domain: 'example.test', node, epoch: 2, counter: 2 }, (bytes) => key.sign(bytes))

/** In order but for the certificate, which is looked at last. */
const answer = {
  node_id: 'gpu-001',
  domain: 'example.test',
  epoch: 2,
  certificate_chain: '',
  roots,
  vcluster: null,
  profile: { name: 'x', key_storage: 'file', key_types: ['p256'], lifetime_ms: 1, renew_from: 0.5, renew_to: 0.6 },
  endpoints: { id: 'runtime', revision: 1, runtime: ['https://a.test'], stream: ['wss://a.test'] },
  server_time: isoTime(now.atMs),
  liveness_grace_ms: 1,
  understands: [],
  counter: counterOf('gpu-001'),
}

const recovering = (t: Scope, plane: DatedPlane): { readonly agent: AgentParts; readonly way: WayBack } => {
  const agent = {
    ...connectingAgent(t),
    config: testAgentConfig(t, join, { keyStorage: 'memory', recovery: 'none' }),
    signal: new AbortController().signal,
    reached: () => {},
    instance: 'i',
    episode: { current: () => null },
    rotation: { wanted: () => null },
    bearerTurns: openBearerTurns(systemTimers),
  } as unknown as AgentParts
  const identity = {
    nodeId: 'gpu-001',
    domain: 'example.test',
    epoch: 1,
    profile: answer.profile,
    understands: [],
  } as unknown as Identity
  const current = { notAfterMs: 0 } as Identity['current']
  agent.keeper.keep(withRequest({ identity: { ...identity, current }, request: null }, null))
  const urls = [`https://localhost:${plane.port}`]
  return {
    agent,
    way: {
      domain: 'example.test',
      node: 'gpu-001',
      target: { urls, trust: now.trust, plane: { domain: 'example.test', marked: false }, purpose: 'recovery', pinned },
      credential: { kind: 'key', keyType: 'p256', keyPem: key.pkcs8Pem() },
      counter: null,
    },
  }
}

const wrong: readonly [object, RegExp][] = [
  [{}, /no certificate chain/],
  [{ node_id: 'gpu-002' }, /for another node/],
  [{ domain: 'other.test' }, /for another node/],
  [{ epoch: -1 }, /below zero/],
  [{ liveness_grace_ms: -1 }, /below zero/],
  [{ roots: [] }, /no roots/],
  [{ profile: { ...answer.profile, renew_to: 1 } }, /would not renew in time/],
  [{ endpoints: { ...answer.endpoints, recovery: ['http://a.test'] } }, /not https/],
  [{ counter: counterOf('gpu-002') }, /of another node/],
  [{ recovery_trust: { roots, statement_keys: [] } }, /no keys for statements/],
  [{ recovery_token: 'x' }, /token is malformed/],
  [{ clock_tolerance_ms: 0 }, /tolerance/],
  [{ epoch: 'two' }, /schema/],
]

test('an answer that is not what was asked for takes the place of nothing, and says what is wrong with it', async (t) => {
  const plane = await startDatedPlane(t, now)
  plane.challenge = (nonce) => statementOf(nonce, now.atMs, undefined, 'gpu-001')
  const { agent, way } = recovering(t, plane)
  for (const [change, shape] of wrong) {
    plane.answer = { ...answer, ...change }
    const outcome = await recoverOnce(agent, way, story, null)
    assert.ok(outcome.kind === 'refused', `${JSON.stringify(change)}: ${JSON.stringify(outcome)}`)
    assert.equal(outcome.code, 'ANSWER_UNUSABLE')
    assert.match(outcome.trouble.text, shape)
    assert.equal(agent.keeper.credentials().identity?.epoch, 1)
  }
})

test('no recovery is sent to a server whose challenge is not signed by a pinned key', async (t) => {
  const plane = await startDatedPlane(t, now)
  plane.challenge = (nonce) => statementOf(nonce, now.atMs, generateKey('p256'), 'gpu-001')
  const { agent, way } = recovering(t, plane)
  const outcome = await recoverOnce(agent, way, story, null)
  assert.equal(outcome.kind, 'untrusted')
  assert.deepEqual(
    plane.calls.map(({ path }) => path),
    ['/v1/challenge'],
  )
  assert.equal(agent.keeper.credentials().request, null)
})

test('a renewal may not exchange all roots at once, nor bring a profile that would not renew', async (t) => {
  const plane = await startDatedPlane(t, now)
  const { agent } = recovering(t, plane)
  const identity = {
    ...agent.keeper.credentials().identity,
    source: 'plane',
    roots,
    endpoints: { ...answer.endpoints, runtime: [`https://localhost:${plane.port}`] },
    origin: { url: `https://localhost:${plane.port}` },
    understands: [],
    counter: null,
    current: {
      serial: '1',
      issuedAtMs: now.atMs,
      notAfterMs: now.atMs + 60_000,
      chainPem: now.client.certPem,
      ...now.client,
    },
  } as unknown as Identity
  agent.keeper.keep({ identity, request: null })
  const stranger = timesAt(now.atMs).trust
  const others = stranger.kind === 'roots' ? stranger.roots : []
  for (const [change, shape] of [
    [{}, /no certificate chain/],
    [{ roots: others }, /none of the roots in use/],
    [{ roots: [...others, ...roots] }, /no certificate chain/],
    [{ profile: { ...answer.profile, renew_from: 0 } }, /would not renew in time/],
    [{ counter: counterOf('gpu-002') }, /of another node/],
  ] as const) {
    plane.answer = { ...answer, ...change }
    const outcome = await renewWithin(agent, identity, 10_000)
    assert.ok(outcome.kind === 'refused', JSON.stringify(outcome))
    assert.match(outcome.trouble.text, shape)
    assert.deepEqual(agent.keeper.credentials().identity?.roots, roots)
  }
})
