// Text with a NUL character or half of a surrogate pair, which PostgreSQL does not take: a caller without any credential
// could make a replica unready with it and fill its log.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { activeNode } from '../process/active-node.ts'
import { nodeCall } from '../process/node-call.ts'
import { openPlaneLog } from '../process/plane-log.ts'
import { startPlane } from '../process/start-plane.ts'
import { refusal } from './ask-plane.ts'

const unfit = ['a\u0000b', 'a\ud800b']

const evidenceWith = (serial: string): AgentEvidence => ({
  instance: 'i'.repeat(22),
  hardware: { macs: [], bmc_serial: serial },
  machine: null,
  agent_version: '0.2.0',
})

test('text that cannot be stored is refused before anything is read, and the plane stays ready and says nothing', async (t) => {
  const log = openPlaneLog(t, 'info')
  const plane = await startPlane(t, log.options)
  const target = await plane.target()
  const node = await activeNode(plane, 'gpu-001')
  const stranger = (path: string, body: object, evidence: AgentEvidence | null = null) =>
    nodeCall(target, null, 'POST', path, body, evidence)
  for (const text of unfit) {
    const hardware = { macs: [], bmc_serial: text }
    const enroll = { method: 'hardware', hardware_identity: hardware, csr: 'x' }
    const refused = await stranger('/v1/enroll', enroll)
    assert.deepEqual(refusal(refused), [400, 'REQUEST_INVALID'])
    assert.match(refused.body.detail, /^body\/hardware_identity\/bmc_serial has a NUL character/)
    for (const body of [
      { method: 'token', enrollment_token: text, csr: 'x' },
      { [text]: 1 },
      { ...enroll, node_id: text, hardware_identity: { macs: [text], bmc_serial: null } },
    ])
      assert.deepEqual(refusal(await stranger('/v1/enroll', body)), [400, 'REQUEST_INVALID'])
    // What is encoded in text is read before its signature is checked.
    const claims = { domain: text, to: plane.domain, at_ms: Date.now(), machines: [] }
    const statement = formatStatement('claims', claims, () => new Uint8Array(64))
    assert.equal(refusal(await stranger('/v1/claims', { statement }))[1], 'CLAIM_INVALID')
    const another = { ...enroll, hardware_identity: { macs: ['52:54:00:00:00:01'], bmc_serial: null } }
    assert.notEqual((await stranger('/v1/enroll', another, evidenceWith(text))).status, 503)
    const { identity } = node
    const confirm = await nodeCall(target, identity(), 'POST', '/v1/nodes/gpu-001/confirm', {}, evidenceWith(text))
    assert.equal(confirm.status, 200, JSON.stringify(confirm.body))
    const revoke = await plane.api('POST', '/v1/nodes/gpu-001/revoke', { reason: text })
    assert.deepEqual(refusal(revoke), [400, 'REQUEST_INVALID'])
  }
  for (const path of ['/v1/nodes/a%00b', '/v1/nodes?vcluster=a%00b', '/v1/journal?node=a%00b', '/v1/nodes?a%00b=1'])
    assert.deepEqual(refusal(await plane.api('GET', path)), [400, 'REQUEST_INVALID'], path)
  const { body: first } = await plane.api('GET', '/v1/scheduling?limit=1')
  const [, since] = String(first.next ?? first.cursor).split('.')
  const forged = `l.${since}.${Buffer.from('a\u0000b').toString('base64url')}`
  assert.deepEqual(refusal(await plane.api('GET', `/v1/scheduling?after=${forged}`)), [400, 'REQUEST_INVALID'])

  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  const ready = await plane.api('GET', '/readyz')
  assert.equal(ready.status, 200, JSON.stringify(ready.body))
  assert.equal((await node.confirm()).status, 200)
  const errors = log.lines().filter(({ level }) => level === 'error' || Number(level) >= 50)
  assert.deepEqual(errors, [])
})
