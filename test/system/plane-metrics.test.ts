// What a real plane shows Prometheus after things have happened to it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { activeNode } from '../process/active-node.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'

const plane = sharedPlane()

const valuesOf = async (): Promise<(line: string) => number | undefined> => {
  const { status, body } = await plane().api('GET', '/metrics')
  assert.equal(status, 200)
  const values = new Map(
    String(body)
      .split('\n')
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
  return (line) => values.get(line)
}

test('what is issued, refused, committed and waiting is counted', async () => {
  const before = await valuesOf()
  const node = await activeNode(plane(), 'gpu-001')
  const { reply, identity } = await node.renew()
  assert.equal(reply.status, 200)
  assert(identity !== null)
  node.use(identity)
  assert.equal((await node.confirm()).status, 200)
  const stranger = rawNode(await plane().target())
  assert.equal((await stranger.enrollByToken(`enroll_${'a'.repeat(43)}`)).body.code, 'TOKEN_INVALID')
  await plane().api('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'a look' })

  const after = await valuesOf()
  const more = (line: string): number => (after(line) ?? NaN) - (before(line) ?? NaN)
  assert.equal(more('muster_certificates_issued_total{kind="enroll"}'), 1)
  assert.equal(more('muster_certificates_issued_total{kind="renew"}'), 1)
  assert.equal(more('muster_certificates_issued_total{kind="recover"}'), 0)
  assert.equal(more('muster_renewals_total'), 1)
  assert.equal(more('muster_quarantines_total'), 1)
  assert.equal(more('muster_refusals_total{code="TOKEN_INVALID"}'), 1)
  assert.equal(more('muster_journal_entries_total{type="node.renewal_confirmed"}'), 1)
  assert.ok(more('muster_store_group_commits_total') >= 6)
  assert.ok(more('muster_store_commit_seconds_count') >= 6)
  assert.equal(after('muster_nodes{membership="quarantined"}'), 1)
  assert.equal(after('muster_ready'), 1)
  assert.equal(after('muster_store_writable'), 1)
})

test('a certificate of a program is counted among those that were issued', async () => {
  const { status } = await plane().api('PATCH', '/v1/profiles/gpu-cloud', { set: { outputs: [{ name: 'probe' }] } })
  assert.equal(status, 200)
  const node = await activeNode(plane(), 'gpu-002')
  const before = await valuesOf()
  const leaf = await node.call('POST', '/v1/nodes/gpu-002/programs/probe', { csr: makeCsr(generateKey('p256'), 'x') })
  assert.equal(leaf.status, 200, JSON.stringify(leaf.body))
  const issued = 'muster_certificates_issued_total{kind="program"}'
  assert.deepEqual([before(issued), (await valuesOf())(issued)], [0, 1])
})

test('no label carries a name that a caller chose', async () => {
  const { body } = await plane().api('GET', '/metrics')
  assert.ok(!String(body).includes('gpu-001'))
})

test('metrics of single nodes are off unless they are asked for at the start', async () => {
  const { status, body } = await plane().api('GET', '/metrics/nodes')
  assert.deepEqual([status, body.code], [404, 'NOT_FOUND'])
  assert.match(body.detail, /--node-metrics/)
})
