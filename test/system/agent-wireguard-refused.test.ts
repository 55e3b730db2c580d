// An agent whose plane does not take the WireGuard part of its enrollment: because it is older, or because the part is wrong.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnknownField } from '#agent/enrollment/enroll-call.ts'
import { refusalFrom } from '#agent/link/plane-failure.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
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

test('a plane that does not know a field says so in words that an agent recognises as that, and no other refusal is', async () => {
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
