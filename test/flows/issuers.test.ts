// Outside issuers as operators set them up: what is refused, where secrets are, and what a row in the database is worth.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RowTypes, Write } from '#domain/core/change.ts'
import { openIssuers } from '#plane/issuers/open-issuers.ts'
import { outsideRoot, scriptedIssuers } from '../fakes/scripted-issuers.ts'
import { signingOrder } from '../fakes/issuer-rows.ts'
import { selfSigned } from '../process/self-signed.ts'
import type { Json } from '../process/operator-call.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const secret = 'canary-provisioner-key-7f3a'

const setUp = async (t: TestContext) => {
  const plane = await setUpOperatorServer(t)
  const root = outsideRoot('Corp Root', plane.clock.nowMs())
  const corp = {
    name: 'corp',
    url: 'https://ca.corp.example:9000',
    server_roots: [root.pem],
    roots: [root.pem],
    step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewals' },
    secrets: { provisioner_key: secret },
  }
  const ask = (method: string, at: string, body?: object) => plane.call('platform-admin', method, at, body)
  return {
    ...{ plane, root, corp, ask },
    add: (changes: object = {}) => ask('POST', '/v1/issuers', { ...corp, ...changes }),
    show: async (name = 'corp'): Promise<Json> => (await ask('GET', `/v1/issuers/${name}`)).body,
    set: (profile: string, set: object) => ask('PATCH', `/v1/profiles/${profile}`, { set }),
  }
}

/** As somebody who has the database alone. */
const tamper = async ({ bare }: OperatorSetup, key: string, change: (row: RowTypes['outside-issuer']) => object) => {
  const row = (await bare.get('outside-issuer', key)) ?? assert.fail()
  const [entry] = await bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  const outcome = await bare.commit({
    reads: [{ row: 'outside-issuer', key, version: row.version }],
    writes: [{ put: 'outside-issuer', value: change(row.value) } as Write],
    entries: [{ ...(entry?.entry ?? assert.fail()), type: 'alert.raised' } as never],
  })
  assert.notEqual(outcome, 'lost-race')
}

test('an issuer is added, tested, named by a profile, disabled and enabled, and retires when nothing uses it any more', async (t) => {
  const { plane, root, ask, add, show, set } = await setUp(t)
  assert.deepEqual(
    (await ask('GET', '/v1/issuers')).body.issuers.map(({ name, kind, profiles }: Json) => [
      name,
      kind,
      profiles.length,
    ]),
    [['built-in', 'built-in', 4]],
  )
  const added = await add()
  assert.equal(added.status, 201, JSON.stringify(added.body))
  assert.deepEqual(
    [added.body.state, added.body.secrets, added.body.renewal_root, added.body.roots[0].id, added.body.tested_at],
    ['enabled', ['provisioner_key', 'renewal_root'], 'the root of renewals', root.id, null],
  )
  const early = await set('gpu-cloud', { 'certificate.issuer': 'corp' })
  assert.deepEqual([early.body.code, early.status], ['ISSUER_NOT_READY', 409])

  plane.scripted.faults.push({ setting: 'db', why: 'it has no database', fix: '"db": {}' })
  const failed = (await ask('POST', '/v1/issuers/corp/test', {})).body
  assert.deepEqual([failed.passed, failed.faults[0].fix, failed.issuer.tested_at], [false, '"db": {}', null])
  plane.scripted.faults.length = 0
  const passed = (await ask('POST', '/v1/issuers/corp/test', { profiles: ['gpu-cloud'] })).body
  assert.deepEqual([passed.passed, passed.issuer.longest_lifetime_ms], [true, 86_400_000])
  const [sample] = plane.scripted.made.at(-1)?.samples ?? []
  assert.deepEqual([sample?.kind, sample?.leastLifetimeMs], ['gpu-cloud', 43_200_000])

  assert.equal((await set('gpu-cloud', { 'certificate.issuer': 'corp' })).status, 200)
  assert.equal((await ask('GET', '/v1/profiles/gpu-cloud')).body.certificate.issuer, 'corp')
  assert.deepEqual((await show()).profiles, ['gpu-cloud'])
  const long = await set('gpu-cloud', { 'certificate.lifetimeMs': 172_800_000 })
  assert.deepEqual([long.body.code, /tested for 1 d/.test(long.body.detail)], ['ISSUER_NOT_READY', true])
  await ask('POST', '/v1/issuers/corp/test', { lifetime_ms: 172_800_000 })
  assert.equal((await set('gpu-cloud', { 'certificate.lifetimeMs': 172_800_000 })).status, 200)

  const disabled = await ask('POST', '/v1/issuers/corp/disable', { reason: 'maintenance' })
  assert.deepEqual([disabled.body.state, disabled.body.disabled.reason], ['disabled', 'maintenance'])
  assert.equal((await set('mesh-paas', { 'certificate.issuer': 'corp' })).body.code, 'ISSUER_NOT_READY')
  // What has nothing to do with it can be changed meanwhile.
  assert.equal((await set('gpu-cloud', { description: 'hosts' })).status, 200)
  const entered = await plane.issuers.outside.enter('corp')
  assert.deepEqual(entered.kind === 'refused' && [entered.code, entered.detail], [
    'ISSUER_UNAVAILABLE',
    'corp is disabled: maintenance',
  ])
  assert.equal((await ask('POST', '/v1/issuers/corp/enable', {})).body.state, 'enabled')
  assert.equal((await ask('POST', '/v1/issuers/corp/enable', {})).body.code, 'ISSUER_STATE_CONFLICT')

  const named = await ask('POST', '/v1/issuers/corp/retire', {})
  assert.deepEqual([named.body.code, /gpu-cloud/.test(named.body.detail)], ['ISSUER_IN_USE', true])
  assert.equal((await set('gpu-cloud', { 'certificate.issuer': 'built-in' })).status, 200)
  const before = (await plane.store.get('outside-issuer', 'corp'))?.value
  assert.equal((await ask('POST', '/v1/issuers/corp/retire', {})).status, 200)
  assert.equal((await ask('GET', '/v1/issuers/corp')).status, 404)
  const custody = await plane.custody()
  assert.equal(custody.has({ role: 'issuer-secret', id: before?.secrets?.key ?? '' }), false)
  const again = await add()
  assert.equal(again.status, 201, JSON.stringify(again.body))
  assert.notEqual((await plane.store.get('outside-issuer', 'corp'))?.value.id, before?.id)
  const said = await Promise.all(
    (['issuer.added', 'issuer.tested', 'issuer.disabled', 'issuer.enabled', 'issuer.retired'] as const).map(
      plane.journal,
    ),
  )
  assert.deepEqual(
    said.map(({ length }) => length),
    [2, 2, 1, 1, 1],
  )
})

test('an issuer that can still have valid certificates does not retire', async (t) => {
  const { plane, ask, add } = await setUp(t)
  await add()
  const issuer = (await plane.store.get('outside-issuer', 'corp'))?.value ?? assert.fail()
  const nowMs = plane.clock.nowMs()
  const order = signingOrder({
    issuer: issuer.id,
    issuedAtMs: nowMs,
    attempts: [{ serial: 'a9', atMs: nowMs, fate: { kind: 'kept', serial: 'a9' } }],
  })
  const [entry] = await plane.bare.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  await plane.bare.commit({
    reads: [{ row: 'order', key: order.id, version: 0 }],
    writes: [{ put: 'order', value: { ...order, state: { kind: 'issued', serial: 'a9', atMs: nowMs } } }],
    entries: [{ ...(entry?.entry ?? assert.fail()), type: 'alert.raised' } as never],
  })
  const refused = await ask('POST', '/v1/issuers/corp/retire', {})
  assert.deepEqual(
    [refused.body.code, /1 certificate of it can still be valid/.test(refused.body.detail)],
    ['ISSUER_IN_USE', true],
  )
  plane.clock.advance(2 * 86_400_000)
  assert.equal((await ask('POST', '/v1/issuers/corp/retire', {})).status, 200)
})

test('what does not fit together is refused with the field at fault, and nothing is kept of it', async (t) => {
  const { plane, corp, add, ask } = await setUp(t)
  const leaf = selfSigned('no ca').chainPem
  const vault = { mount: 'pki', roles: [{ profile: '*', role: 'node' }], auth: 'approle', role_id: 'r1' }
  const cases: readonly (readonly [object, string, string])[] = [
    [{ name: 'built-in' }, 'REQUEST_INVALID', 'name'],
    [{ url: 'https://user@host' }, 'REQUEST_INVALID', 'url'],
    [{ roots: [leaf] }, 'REQUEST_INVALID', 'roots'],
    [{ roots: ['x'] }, 'REQUEST_INVALID', 'roots'],
    [{ server_roots: ['x'] }, 'REQUEST_INVALID', 'server_roots'],
    [{ vault }, 'REQUEST_INVALID', 'vault'],
    [{ step_ca: undefined }, 'REQUEST_INVALID', 'step_ca'],
    [{ step_ca: undefined, vault: { ...vault, auth: 'token' } }, 'REQUEST_INVALID', 'vault.role_id'],
    [{ step_ca: { ...corp.step_ca, provisioner: 'Admin JWK' } }, 'REQUEST_INVALID', 'step_ca.provisioner'],
    [{ step_ca: undefined, vault: { ...vault, mount: 'pki/../sys' } }, 'REQUEST_INVALID', 'vault.mount'],
    [{ step_ca: undefined, vault: { ...vault, mount: '..' } }, 'REQUEST_INVALID', 'vault.mount'],
    [{ step_ca: undefined, vault: { ...vault, auth_mount: './x' } }, 'REQUEST_INVALID', 'vault.auth_mount'],
    [{ secrets: {} }, 'REQUEST_INVALID', 'secrets.provisioner_key'],
    [{ secrets: { ...corp.secrets, token: 'x' } }, 'REQUEST_INVALID', 'secrets.token'],
    [{ secrets: { provisioner_key: 'broken' } }, 'REQUEST_INVALID', 'secrets.provisioner_key'],
  ]
  for (const [changes, code, field] of cases) {
    const { body } = await add(changes)
    assert.deepEqual([body.code, body.field], [code, field], JSON.stringify(body))
  }
  // The authority of the domain itself is none of an outside issuer.
  const [own] = plane.authority.roots()
  assert.match((await add({ roots: [own] })).body.detail, /is an authority of this domain/)
  const custody = await plane.custody()
  assert.deepEqual(
    custody.names().filter(({ role }) => role === 'issuer-secret'),
    [],
  )
  assert.equal((await ask('POST', '/v1/issuers/built-in/retire', {})).body.code, 'REQUEST_INVALID')
  assert.equal((await add()).status, 201)
  assert.equal((await add()).body.code, 'ISSUER_EXISTS')
  const kind = await ask('PATCH', '/v1/issuers/corp', { vault, secrets: { secret_id: 's' } })
  assert.deepEqual([kind.body.code, kind.body.field], ['REQUEST_INVALID', 'kind'])
})

test('a secret is in no answer, no journal entry and no file as it is, and a new one takes its place at every replica', async (t) => {
  const { plane, ask, add, show } = await setUp(t)
  const answers = [await add(), await ask('GET', '/v1/issuers'), await ask('GET', '/v1/document')]
  const first = (await plane.store.get('outside-issuer', 'corp'))?.value.secrets ?? assert.fail()
  const other = scriptedIssuers()
  const replica = await openIssuers(plane.core, { custody: await plane.custody(), kinds: other.kinds })
  const changed = await ask('PATCH', '/v1/issuers/corp', { secrets: { provisioner_key: `${secret}-next` } })
  assert.equal(changed.status, 200, JSON.stringify(changed.body))
  const second = (await plane.store.get('outside-issuer', 'corp'))?.value.secrets ?? assert.fail()
  assert.notEqual(second.key, first.key)
  await replica.outside.test((await plane.store.get('outside-issuer', 'corp'))?.value ?? assert.fail(), {
    samples: [],
    longestMs: 1,
  })
  // What the plane has made stays: it is in the configuration of the step-ca.
  assert.deepEqual(other.made.at(-1)?.secrets, {
    provisioner_key: `${secret}-next`,
    renewal_root: 'the root of renewals',
  })
  assert.equal((await plane.custody()).has({ role: 'issuer-secret', id: first.key }), false)

  answers.push(changed, await ask('PATCH', '/v1/issuers/corp', { url: 'https://ca2.corp.example' }))
  assert.equal((await show()).url, 'https://ca2.corp.example')
  const entries = await plane.store.journal.read({ after: null, last: 500, limit: 500, node: null, type: null })
  for (const text of [...answers, ...entries, await plane.bare.get('outside-issuer', 'corp')])
    assert.ok(!JSON.stringify(text).includes('canary'), JSON.stringify(text))
  for (const file of fs.readdirSync(plane.folder, { recursive: true, withFileTypes: true }))
    if (file.isFile()) assert.ok(!fs.readFileSync(path.join(file.parentPath, file.name)).includes('canary'), file.name)
})

test('a secret that is sent as it is goes to no other server without being given again', async (t) => {
  const { plane, root, ask, add, show } = await setUp(t)
  const vault = { mount: 'pki.d', roles: [{ profile: '*', role: 'node' }], auth: 'approle', role_id: 'r1' }
  const other = outsideRoot('Other Root', plane.clock.nowMs())
  const at = 'https://vault.corp.example'
  assert.equal((await add({ url: at, step_ca: undefined, vault, secrets: { secret_id: 's1' } })).status, 201)
  const refused = async (changes: object): Promise<void> => {
    const { body } = await ask('PATCH', '/v1/issuers/corp', changes)
    assert.deepEqual([body.code, body.field], ['REQUEST_INVALID', 'secrets.secret_id'], JSON.stringify(body))
  }
  await refused({ url: 'https://vault.evil.example' })
  await refused({ server_roots: [root.pem, other.pem] })
  const [declared] = (await ask('GET', '/v1/document')).body.issuers
  const moved = { ...declared, url: 'https://vault.evil.example' }
  const planned = await ask('POST', '/v1/document/plan', {
    document: { apiVersion: 'muster/v1', issuers: [moved] },
    prune: false,
  })
  assert.equal(planned.body.field, 'document.issuers.0.secrets.secret_id', JSON.stringify(planned.body))
  assert.equal((await show()).url, at)
  assert.equal((await ask('PATCH', '/v1/issuers/corp', { vault: { ...vault, mount: 'pki2' } })).status, 200)
  const given = { url: 'https://vault2.corp.example', server_roots: [other.pem], secrets: { secret_id: 's2' } }
  assert.equal((await ask('PATCH', '/v1/issuers/corp', given)).status, 200)
})

test('a row that somebody has changed in the database is not used, raises an alert, and can be retired and added anew', async (t) => {
  const { plane, root, ask, add, show, set } = await setUp(t)
  await add()
  await ask('POST', '/v1/issuers/corp/test', {})
  const original = (await plane.bare.get('outside-issuer', 'corp'))?.value ?? assert.fail()
  await tamper(plane, 'corp', (row) => ({ ...row, url: 'https://evil.example' }))
  assert.equal((await show()).state, 'forged')
  assert.ok(plane.forged.includes('outside-issuer corp'))
  for (const verb of ['test', 'enable'])
    assert.equal((await ask('POST', `/v1/issuers/corp/${verb}`, {})).body.code, 'ISSUER_ROW_FORGED')
  assert.equal((await set('gpu-cloud', { 'certificate.issuer': 'corp' })).body.code, 'ISSUER_ROW_FORGED')
  const replica = await openIssuers(plane.core, { custody: await plane.custody(), kinds: scriptedIssuers().kinds })
  const entered = await replica.outside.enter('corp')
  assert.equal(entered.kind === 'refused' && entered.code, 'ISSUER_UNAVAILABLE')

  assert.equal((await ask('POST', '/v1/issuers/corp/retire', {})).status, 200)
  // As it once was: its MAC is good, and the journal says that it has ended.
  await tamper(plane, 'corp', () => original)
  assert.equal((await show()).state, 'forged')
  assert.equal((await ask('POST', '/v1/issuers/corp/retire', {})).status, 200)
  const again = await add({ roots: [root.pem] })
  assert.equal(again.status, 201, JSON.stringify(again.body))
})

test('a document has issuers without their secrets, changes what is there, retires what it leaves out, and adds none', async (t) => {
  const { plane, ask, add, show } = await setUp(t)
  await add()
  const exported = (await ask('GET', '/v1/document')).body
  assert.deepEqual(Object.keys(exported.issuers[0]), ['name', 'url', 'server_roots', 'roots', 'step_ca'])
  const plan = (issuers: readonly object[], prune = false) =>
    ask('POST', '/v1/document/plan', { document: { apiVersion: 'muster/v1', issuers }, prune })
  const applied = async (planned: Json): Promise<void> => {
    const done = await ask('POST', `/v1/plans/${planned.plan.id}/apply`, {})
    assert.equal(done.status, 200, JSON.stringify(done.body))
  }
  assert.equal((await plan(exported.issuers)).body.plan, null)
  const moved = { ...exported.issuers[0], url: 'https://ca2.corp.example' }
  const changed = (await plan([moved])).body
  assert.match(JSON.stringify(changed.plan), /changed: url/)
  await applied(changed)
  assert.equal((await show()).url, 'https://ca2.corp.example')
  const unknown = await plan([{ ...moved, name: 'other' }])
  assert.deepEqual(
    [unknown.body.code, /muster issuer add other/.test(unknown.body.detail)],
    ['OUTSIDE_ISSUER_NOT_FOUND', true],
  )
  await applied((await plan([], true)).body)
  assert.equal((await ask('GET', '/v1/issuers/corp')).status, 404)
  // What a plan has left behind leaves the custody with the next round of upkeep.
  const secrets = async () => (await plane.custody()).names().filter(({ role }) => role === 'issuer-secret')
  assert.equal((await secrets()).length, 1)
  for (const task of plane.issuers.upkeep(plane.alerts)) await task.run(plane.store)
  assert.deepEqual(await secrets(), [])
})

test('an issuer that stops answering has an alert, which ends with its next answer or when it is disabled', async (t) => {
  const { plane, ask, add } = await setUp(t)
  await add()
  await ask('POST', '/v1/issuers/corp/test', {})
  const { outside } = plane.issuers
  const look = async (): Promise<boolean> => {
    for (const task of plane.issuers.upkeep(plane.alerts)) await task.run(plane.store)
    return plane.alerts.has('issuer_unavailable', 'corp')
  }
  const fail = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time++) {
      const entered = await outside.enter('corp')
      assert.equal(entered.kind, 'entered')
      if (entered.kind === 'entered') entered.leave({ kind: 'fault', why: 'no answer within 15 s' })
    }
  }
  await fail(4)
  assert.equal(await look(), false)
  await fail(1)
  assert.equal(await look(), true)
  assert.match((await ask('GET', '/v1/issuers/corp')).body.health.away_because, /15 s/)
  const [alert] = [...plane.alerts.all()].filter(({ kind }) => kind === 'issuer_unavailable')
  assert.match(alert?.reason ?? '', /corp does not answer: no answer within 15 s/)
  plane.clock.advance(2000)
  const probe = await outside.enter('corp')
  if (probe.kind === 'entered') probe.leave({ kind: 'answered' })
  assert.equal(await look(), false)
  await fail(5)
  assert.equal(await look(), true)
  await ask('POST', '/v1/issuers/corp/disable', { reason: 'maintenance' })
  assert.equal(await look(), false)
})

test('a login that ends has an alert, also where none can be had, and a new secret makes another signer', async (t) => {
  const { plane, ask, add } = await setUp(t)
  await add()
  await ask('POST', '/v1/issuers/corp/test', {})
  const { id } = (await plane.store.get('outside-issuer', 'corp'))?.value ?? assert.fail()
  const look = async (): Promise<string | undefined> => {
    for (const task of plane.issuers.upkeep(plane.alerts)) await task.run(plane.store)
    return [...plane.alerts.all()].find(({ kind }) => kind === 'issuer_login_ending')?.severity
  }
  assert.ok((await plane.issuers.outside.signerOf(id)) !== null)
  plane.scripted.login = { kind: 'ending', untilMs: plane.clock.nowMs() + 1000, why: 'it cannot be renewed any more' }
  assert.equal(await look(), 'warning')
  plane.scripted.login = { kind: 'good', untilMs: null }
  assert.equal(await look(), undefined)
  plane.scripted.login = { kind: 'failed', sinceMs: plane.clock.nowMs(), why: 'permission denied' }
  assert.equal(await look(), 'critical')
  const before = plane.scripted.closed()
  await ask('PATCH', '/v1/issuers/corp', { secrets: { provisioner_key: 'another' } })
  await plane.issuers.outside.signerOf(id)
  assert.equal(plane.scripted.made.at(-1)?.secrets['provisioner_key'], 'another')
  // What it has under way is not cut off: that would be a fault of the issuer.
  assert.equal(plane.scripted.closed(), before)
  plane.timers.advance(150_000)
  assert.equal(plane.scripted.closed(), before + 1)
})
