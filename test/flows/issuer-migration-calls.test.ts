// The calls of migrations: what is refused while one is under way, who may make them, and what a row in the database is worth.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { RowTypes, Write } from '#domain/core/change.ts'
import { outsideRoot } from '../fakes/scripted-issuers.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const at = '/v1/issuer-migrations/gpu-cloud'

const setUp = async (t: TestContext) => {
  const plane = await setUpOperatorServer(t)
  const root = outsideRoot('Corp Root', plane.clock.nowMs())
  const ask = (method: string, path: string, body?: object) => plane.call('platform-admin', method, path, body)
  const added = await ask('POST', '/v1/issuers', {
    name: 'corp',
    url: 'https://ca.corp.example:9000',
    server_roots: [root.pem],
    roots: [root.pem],
    step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewals' },
    secrets: { provisioner_key: 'a key' },
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  assert.equal((await ask('POST', `${at}/finish`, {})).body.code, 'MIGRATION_NOT_FOUND')
  assert.equal((await ask('POST', at, { to: 'corp' })).body.code, 'ISSUER_NOT_READY', 'no test has passed')
  assert.equal((await ask('POST', '/v1/issuers/corp/test', { profiles: ['gpu-cloud'] })).body.passed, true)
  return { plane, ask }
}

test('while a profile is on its way, nothing else decides who signs for it, and neither issuer retires', async (t) => {
  const { plane, ask } = await setUp(t)
  const planned = await ask('GET', `${at}/plan?to=corp`)
  assert.deepEqual([planned.status, planned.body.from, planned.body.active], [200, 'built-in', 0])
  assert.equal((await ask('GET', at)).status, 404, 'a plan begins nothing')
  const begun = await ask('POST', at, { to: 'corp' })
  assert.deepEqual(
    [begun.body.stage, begun.body.progress.roots_delivered],
    ['prepare', true],
    JSON.stringify(begun.body),
  )
  assert.equal((await ask('POST', at, { to: 'corp' })).body.code, 'MIGRATION_NOT_READY')
  const set = await ask('PATCH', '/v1/profiles/gpu-cloud', { set: { 'certificate.issuer': 'corp' } })
  assert.deepEqual([set.status, set.body.code], [409, 'MIGRATION_UNDER_WAY'])
  const other = await ask('PATCH', '/v1/profiles/gpu-cloud', { set: { description: 'on its way' } })
  assert.equal(other.status, 200, 'what has nothing to do with it can be changed')
  assert.equal((await ask('POST', '/v1/profiles/gpu-cloud/delete', {})).body.code, 'MIGRATION_UNDER_WAY')
  const retired = await ask('POST', '/v1/issuers/corp/retire', {})
  assert.deepEqual([retired.body.code, /gpu-cloud/.test(retired.body.detail)], ['ISSUER_IN_USE', true])

  const shared = await ask('POST', `${at}/share`, { percent: 30 })
  assert.deepEqual([shared.body.stage, shared.body.percent], ['share', 30])
  const short = await ask('POST', `${at}/finish`, {})
  assert.match(short.body.detail, /30 percent/)
  await ask('POST', `${at}/share`, { percent: 100 })
  assert.equal((await ask('POST', `${at}/finish`, {})).body.stage, 'finish')
  assert.equal((await ask('GET', '/v1/profiles/gpu-cloud')).body.certificate.issuer, 'corp')
  const back = await ask('PATCH', '/v1/profiles/gpu-cloud', { set: { 'certificate.issuer': 'built-in' } })
  assert.equal(back.body.code, 'MIGRATION_UNDER_WAY')
  assert.equal((await ask('POST', `${at}/retire`, {})).body.stage, 'retire')
  assert.equal((await ask('POST', `${at}/back`, {})).body.code, 'MIGRATION_NOT_FOUND')
  const [listed] = (await ask('GET', '/v1/issuer-migrations')).body.migrations
  assert.deepEqual([listed.stage, listed.progress], ['retire', null])
  const said = await Promise.all(
    (['issuer.migration_begun', 'issuer.migration_moved', 'issuer.migration_ended'] as const).map(plane.journal),
  )
  assert.deepEqual(
    said.map(({ length }) => length),
    [1, 3, 1],
  )
  const viewer = await plane.call('viewer', 'POST', at, { to: 'built-in' })
  assert.equal(viewer.status, 403)
})

test('a row that somebody has changed in the database moves nobody, and can be ended', async (t) => {
  const { plane, ask } = await setUp(t)
  await ask('POST', at, { to: 'corp' })
  const write = async (change: (row: RowTypes['issuer-migration']) => object): Promise<void> => {
    const row = (await plane.bare.get('issuer-migration', 'gpu-cloud')) ?? assert.fail()
    const [entry] = await plane.bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
    const outcome = await plane.bare.commit({
      reads: [{ row: 'issuer-migration', key: 'gpu-cloud', version: row.version }],
      writes: [{ put: 'issuer-migration', value: change(row.value) } as Write],
      entries: [{ ...(entry?.entry ?? assert.fail()), type: 'alert.raised' } as never],
    })
    assert.notEqual(outcome, 'lost-race')
  }
  const original = (await plane.bare.get('issuer-migration', 'gpu-cloud'))?.value ?? assert.fail()
  await write((row) => ({ ...row, stage: { kind: 'share', percent: 100 } }))
  assert.equal((await ask('GET', at)).body.stage, 'forged')
  assert.ok(plane.forged.includes('issuer-migration gpu-cloud'))
  assert.equal((await ask('POST', `${at}/finish`, {})).body.code, 'ISSUER_ROW_FORGED')
  assert.equal((await ask('POST', `${at}/back`, {})).body.stage, 'ended')
  // The row of before has a good MAC. The journal has said that this migration has ended.
  await write(() => original)
  assert.equal((await ask('GET', at)).body.stage, 'forged')
})
