// R3: the row of a node is damaged by SQL while the plane is stopped, on both stores. It harms no other node, is named, and
// can be withdrawn by its id.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { newSecret, storedCertificates, targetByAddress } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { startPlane } from '../process/start-plane.ts'
import { tamperWith } from '../process/tamper.ts'

test('R3: a row that lost a field is shown, alerted and shut out, and is revoked and quarantined by its id', async (t) => {
  const before = await startPlane(t)
  const { sql } = tamperWith(before.data)
  const nodes = new Map<string, ReturnType<typeof rawNode>>()
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004']) {
    const node = rawNode(await targetByAddress(before))
    assert.equal((await node.enrollByToken(await newSecret(before, id))).status, 200)
    assert.equal((await node.confirm()).status, 200)
    nodes.set(id, node)
  }
  await before.stop()
  const replaced = (from: string, to: string, id: string): Promise<unknown> =>
    sql(`UPDATE node SET doc = replace(doc, '${from}', '${to}') WHERE key = '${id}'`)
  await replaced('"slots":', '"slotz":', 'gpu-001')
  await replaced('"epoch":', '"apoch":', 'gpu-002')
  await sql(`UPDATE node SET doc = substr(doc, 1, 40) WHERE key = 'gpu-003'`)
  const plane = await before.restart()

  const listed = (await plane.api('GET', '/v1/nodes')).body.nodes
  assert.deepEqual(
    listed.map(({ id, membership, unreadable }: Json) => [id, membership, unreadable]),
    [
      ['gpu-001', 'quarantined', 'no good membership, machine'],
      ['gpu-002', 'quarantined', 'no good epoch'],
      ['gpu-003', 'quarantined', 'it holds no JSON object'],
      ['gpu-004', 'active', undefined],
    ],
  )
  assert.match((await plane.muster('node', 'list')).stdout, /gpu-001 +unreadable .*\n(.*\n)*gpu-004 +active/)
  assert.match((await plane.muster('node', 'show', 'gpu-003')).stdout, /cannot be read .*muster node revoke gpu-003/s)
  assert.notEqual((await nodes.get('gpu-001')?.confirm())?.status, 200, 'it is shut out')
  assert.equal((await nodes.get('gpu-004')?.confirm())?.status, 200)
  const alerts = await eventually('the alerts', async () => {
    const { body } = await plane.api('GET', '/v1/alerts')
    const found = body.alerts.filter(({ kind }: Json) => kind === 'rows_differ')
    return found.length === 3 && found
  })
  for (const { reason } of alerts) assert.match(reason, /its row cannot be read: .*muster node revoke gpu-00[123]/)

  const docs = (): Promise<readonly Json[]> => sql('SELECT key, version, doc FROM node ORDER BY key')
  const damaged = await docs()
  for (const [verb, body] of [
    ['drain', {}],
    ['repair-bundle', { reason: 'damaged' }],
  ] as const) {
    const { status, body: said } = await plane.api('POST', `/v1/nodes/gpu-001/${verb}`, body)
    assert.deepEqual([status, said.code], [409, 'NODE_STATE_CONFLICT'], JSON.stringify(said))
    assert.match(JSON.stringify(said), /cannot be read/)
  }
  assert.deepEqual(await docs(), damaged, 'nothing is written over what may still be saved')
  const release = await plane.api('POST', '/v1/nodes/gpu-001/release', {})
  assert.deepEqual([release.status, release.body.code], [409, 'NODE_STATE_CONFLICT'])
  for (const [id, verb, membership] of [
    ['gpu-001', 'revoke', 'revoked'],
    ['gpu-002', 'quarantine', 'quarantined'],
    ['gpu-003', 'revoke', 'revoked'],
  ] as const) {
    const [stored] = await storedCertificates(plane, id)
    const done = await plane.api('POST', `/v1/nodes/${id}/${verb}`, { reason: 'damaged' })
    assert.equal(done.status, 200, JSON.stringify(done.body))
    const { body } = await plane.api('GET', `/v1/nodes/${id}`)
    assert.deepEqual([body.membership, body.unreadable, body.epoch], [membership, undefined, 1])
    assert.equal((await plane.api('GET', `/v1/ca/certificates/${stored?.serial}`)).body.status, 'revoked')
    assert.equal((await sql(`SELECT key FROM denial WHERE key = 'epoch/1/${id}'`)).length, 1)
    if (verb === 'revoke')
      assert.equal((await sql(`SELECT key FROM key_ban WHERE key = '${stored?.spki}'`)).length, 1, 'its key is banned')
  }
  const { body } = await plane.api('POST', '/v1/journal/verify', {})
  assert.deepEqual(body.rows.differences, [])
})

test('R3: a revoked node whose row lost a field stays revoked: it is not quarantined, not released, and revoked anew', async (t) => {
  const before = await startPlane(t)
  const { sql } = tamperWith(before.data)
  const id = 'gpu-001'
  const node = rawNode(await targetByAddress(before))
  assert.equal((await node.enrollByToken(await newSecret(before, id))).status, 200)
  assert.equal((await node.confirm()).status, 200)
  assert.equal((await before.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen' })).status, 200)
  await before.stop()
  await sql(`UPDATE node SET doc = replace(doc, '"counter":', '"kounter":') WHERE key = '${id}'`)
  const plane = await before.restart()
  const shown = async (): Promise<Json> => (await plane.api('GET', `/v1/nodes/${id}`)).body
  assert.equal((await shown()).unreadable, 'no good counter')

  const call = async (verb: string, body: Json): Promise<unknown[]> => {
    const { status, body: said } = await plane.api('POST', `/v1/nodes/${id}/${verb}`, body)
    return [status, said.code]
  }
  assert.deepEqual(await call('quarantine', { reason: 'damaged' }), [403, 'NODE_REVOKED'])
  assert.deepEqual(await call('release', {}), [409, 'NODE_STATE_CONFLICT'])
  assert.equal((await shown()).unreadable, 'no good counter', 'nothing was written over it')
  assert.deepEqual(await call('revoke', { reason: 'damaged' }), [200, undefined])
  const { membership, unreadable, epoch } = await shown()
  assert.deepEqual([membership, unreadable, epoch], ['revoked', undefined, 1])
  assert.deepEqual(await call('release', {}), [403, 'NODE_REVOKED'])
  const { body } = await plane.api('POST', '/v1/journal/verify', {})
  assert.deepEqual(body.rows.differences, [])
})
