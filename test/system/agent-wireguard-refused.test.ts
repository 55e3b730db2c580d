// An agent whose plane does not take the WireGuard part of its enrollment: because it is older, or because the part is wrong.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnknownField } from '#agent/enrollment/enroll.ts'
import { refusalFrom } from '#agent/link/plane-failure.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { refusal, startSmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'

const shared = sharedPlane()

test('a plane that refuses what an agent says of WireGuard keeps it out, with the token unused: it does not join without', async (t) => {
  const plane = shared()
  const join = parseJoinString(await plane.token('--node', 'wg-wrong')) ?? assert.fail('no join string')
  const endpoint = { ipv4: '127.0.0.1', ipv6: null, port: 51_820 }
  const wireguard = { interface: 'muster0', endpoint }
  const outcome = await runTestAgent(t, testAgentConfig(t, join, { wireguard })).outcome
  assert.equal(outcome.kind, 'refused')
  assert.match('trouble' in outcome ? outcome.trouble.text : '', /underlay_endpoint\.ipv4/)
  const { body } = await plane.api('GET', '/v1/nodes/wg-wrong')
  assert.equal((body as { membership: string }).membership, 'registered')
})

test('an older plane that does not know the WireGuard part is joined without it, once; another refusal is not got around', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  const asked = (): boolean[] =>
    small.calls.filter(({ path }) => path === '/v1/enroll').map(({ body }) => 'wireguard' in body)
  small.intercept = (path) =>
    path === '/v1/enroll' && asked().at(-1) === true
      ? refusal(400, 'REQUEST_INVALID', null, { field: 'wireguard', field_unknown: true })
      : null
  const wireguard = { interface: 'muster0', endpoint: null }
  runTestAgent(t, testAgentConfig(t, small.join, { wireguard }))
  await eventually('a channel', () => small.channels.length > 0)
  assert.deepEqual(asked(), [true, false])

  const strict = await startSmallPlane(t, Date.now())
  strict.intercept = (path) =>
    path === '/v1/enroll' ? refusal(400, 'REQUEST_INVALID', null, { field: 'wireguard' }) : null
  const { kind } = await runTestAgent(t, testAgentConfig(t, strict.join, { wireguard })).outcome
  assert.equal(kind, 'refused')
  assert.equal(strict.calls.filter(({ path }) => path === '/v1/enroll').length, 1)
})

test('a plane that does not know a field names it, so that an agent recognises that, and no other refusal is taken for it', async () => {
  const node = rawNode(await shared().target())
  const said = async (more: object) => {
    const { status, body } = await node.enrollByToken(`enroll_${'a'.repeat(43)}`, more)
    return refusalFrom(status, null, JSON.stringify(body))
  }
  assert.ok(isUnknownField(await said({ of_later: {} }), 'of_later'))
  assert.ok(!isUnknownField(await said({ of_later: {} }), 'wireguard'))
  assert.ok(!isUnknownField(await said({ wireguard: { public_key: 'AAAA', underlay_endpoint: null } }), 'wireguard'))
  assert.ok(!isUnknownField(await said({}), 'wireguard'))
})
