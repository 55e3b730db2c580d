// Ruling 20: nobody plays the plane. A leaf below the plane's own roots is not enough: it has to be the plane's, by its mark.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Connected, PlaneTarget } from '#agent/link/connect-at.ts'
import { connectPlane } from '#agent/link/connect-plane.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { planeMark } from '#domain/core/plane-mark.ts'
import { generateKey } from '#pki/keys.ts'
import { systemClock } from '#platform/clock.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import { pinned, startDatedPlane, timesAt, type DatedPlane } from '../fakes/dated-plane.ts'
import { startSmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { leaf, serverOrder, type Held } from '../vectors/pki-hierarchy.ts'

const now = timesAt(systemClock.nowMs())
const ours = planeMark('example.test')
const program = 'spiffe://example.test/node/gpu-001/program/web'
const never = new AbortController().signal

/** Signed by the issuing CA of the plane itself. */
const serverWith = (uriSans: readonly string[], dnsSans: readonly string[] = ['localhost']): Held => {
  const key = generateKey('p256')
  return leaf(key, serverOrder(key, { uriSans, dnsSans, ipSans: [], issuedAtMs: now.atMs }), now.authorities.issuing)
}

const situations = {
  'before enrollment': {
    trust: { kind: 'fingerprint', rootFingerprint: now.authorities.root.certificate.sha256 },
    client: null,
  },
  'after enrollment': { trust: now.trust, client: now.client },
  'for recovery': { trust: now.trust, client: null, purpose: 'recovery', pinned },
} as const satisfies Record<string, Partial<PlaneTarget>>

const connect = async (
  t: TestContext,
  { url }: Pick<DatedPlane, 'url'>,
  situation: keyof typeof situations,
  marked: boolean,
): Promise<Connected | PlaneFailure> => {
  const target = { url, plane: { domain: 'example.test', marked }, ...situations[situation] }
  const outcome = await connectPlane(connectingAgent(t), target, never)
  if (outcome.kind === 'connected') outcome.socket.destroy()
  return outcome
}

const codeOf = (outcome: Connected | PlaneFailure): string =>
  'trouble' in outcome ? `${outcome.trouble.code} ${outcome.trouble.evidence['code']}` : outcome.kind

for (const situation of Object.keys(situations) as (keyof typeof situations)[]) {
  test(`a leaf of a program, of another domain or of two holders is not the plane: ${situation}`, async (t) => {
    for (const uris of [
      [program],
      [planeMark('other.test')],
      [ours, program],
      ['spiffe://example.test/node/gpu-001'],
    ]) {
      const impostor = await startDatedPlane(t, now, { held: serverWith(uris) })
      for (const marked of [false, true]) {
        assert.equal(codeOf(await connect(t, impostor, situation, marked)), 'server_tls_untrusted wrong-mark')
      }
      assert.deepEqual(impostor.calls, [])
    }
  })

  test(`a plane without the mark is accepted as long as it is not known to have one: ${situation}`, async (t) => {
    const old = await startDatedPlane(t, now, { held: serverWith([]) })
    assert.equal(codeOf(await connect(t, old, situation, false)), 'connected')
    assert.equal(codeOf(await connect(t, old, situation, true)), 'server_tls_untrusted wrong-mark')
    const plane = await startDatedPlane(t, now, { held: serverWith([ours]) })
    for (const marked of [false, true]) assert.equal(codeOf(await connect(t, plane, situation, marked)), 'connected')
  })
}

test('a plane with another name is called that, and only recovery accepts it, by its mark', async (t) => {
  const renamed = await startDatedPlane(t, now, { held: serverWith([ours], ['new.example.test']) })
  for (const situation of ['before enrollment', 'after enrollment'] as const) {
    const outcome = await connect(t, renamed, situation, true)
    assert.equal(codeOf(outcome), 'server_name_wrong wrong-name')
    assert.ok('trouble' in outcome)
    assert.equal(outcome.trouble.class, 'endpoint_profile_drift')
    assert.match(outcome.trouble.text, /is not called localhost in its certificate: .*new\.example\.test/)
    assert.match(outcome.trouble.next, /muster domain names list/)
  }
  assert.equal(codeOf(await connect(t, renamed, 'for recovery', true)), 'connected')
  assert.equal(codeOf(await connect(t, renamed, 'for recovery', false)), 'connected')
})

test('recovery accepts another name from nobody but the plane', async (t) => {
  for (const uris of [[], [program]]) {
    const other = await startDatedPlane(t, now, { held: serverWith(uris, ['new.example.test']) })
    const outcome = await connect(t, other, 'for recovery', false)
    assert.equal(codeOf(outcome), 'server_name_wrong wrong-name')
    assert.equal('trouble' in outcome && outcome.trouble.class, 'recovery_enrollment_blocked')
    assert.deepEqual(other.calls, [])
  }
})

const kept = (folder: string): boolean =>
  (JSON.parse(fs.readFileSync(path.join(folder, 'identity.json'), 'utf8')) as { identity: { marked: boolean } })
    .identity.marked

test('an agent that hears of the mark keeps it, and does not accept the plane without it any more', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  const config = testAgentConfig(t, small.join, {})
  const first = runTestAgent(t, config)
  await eventually('a channel', () => small.channels.length === 1)
  assert.equal(kept(config.stateFolder), false)
  small.capabilities.push('marked')
  small.channels[0]?.socket.terminate()
  await eventually('the mark to be kept', () => kept(config.stateFolder))
  await first.stop()
  small.capabilities = []
  runTestAgent(t, config)
  const status = path.join(config.stateFolder, 'status.json')
  await eventually('the agent to say so', () => /server_tls_untrusted/.test(fs.readFileSync(status, 'utf8')))
  assert.equal(small.channels.length, 2)
})

test('with keys in memory the mark outlives the identity, and an older join string does not undo it', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  small.enrollAnswer = { understands: ['marked'] }
  const config = testAgentConfig(t, { ...small.join, secret: null }, { joinMethod: 'hardware', keyStorage: 'memory' })
  const first = runTestAgent(t, config)
  await eventually('the enrollment', () => small.calls.some(({ path: called }) => called.endsWith('/v1/enroll')))
  await eventually('the mark to be kept', () => fs.existsSync(path.join(config.stateFolder, 'marked.json')))
  await first.stop()
  const calls = small.calls.length
  const outcome = await runTestAgent(t, config).outcome
  assert.equal(outcome.kind === 'untrusted' && outcome.trouble.code, 'server_tls_untrusted')
  assert.equal(small.calls.length, calls)
})

test('a join string that says so is enough', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  const outcome = await runTestAgent(t, testAgentConfig(t, { ...small.join, marked: true }, {})).outcome
  assert.equal(outcome.kind === 'untrusted' && outcome.trouble.evidence['code'], 'wrong-mark')
  assert.deepEqual(small.calls, [])
})
