// Outputs and worker issuers that name an outside issuer, as operators set them: over the API and as a document.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { outsideRoot } from '../fakes/scripted-issuers.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { setUpOperatorServer } from './operator-setup.ts'

test('an output and a worker issuer name an issuer that was tested for them, are exported with it, and keep it', async (t) => {
  const plane = await setUpOperatorServer(t)
  const ask = (method: string, at: string, body?: object) => plane.call('platform-admin', method, at, body)
  const root = outsideRoot('Corp Root', plane.clock.nowMs())
  const added = await ask('POST', '/v1/issuers', {
    ...{ name: 'corp', url: 'https://ca.corp.example:9000', server_roots: [root.pem], roots: [root.pem] },
    step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewals' },
    secrets: { provisioner_key: 'canary' },
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  const web = { name: 'web', usage: 'server', dns: ['{name}', 'db.{name}'], addresses: true, lifetimeMs: 3_600_000 }
  const list = (issuer: string) => ask('PATCH', '/v1/vclusters/training', { set: { outputs: [{ ...web, issuer }] } })
  assert.equal((await ask('POST', '/v1/vclusters', { name: 'training' })).status, 201)
  const listed = await list('built-in')
  assert.deepEqual([listed.status, 'issuer' in listed.body.outputs[0]], [200, false], JSON.stringify(listed.body))
  assert.equal((await list('corp')).body.code, 'ISSUER_NOT_READY')
  const east = cluster()
  const workers = { name: 'east', iss: east.iss, aud: east.aud, sub: east.sub, types: [], vclusters: [] }
  assert.equal((await ask('POST', '/v1/worker-issuers', { ...workers, jwks: east.jwks() })).body.signed_by, 'built-in')
  assert.equal((await ask('PATCH', '/v1/worker-issuers/east', { signed_by: 'corp' })).body.code, 'ISSUER_NOT_READY')

  const unknown = await ask('POST', '/v1/issuers/corp/test', { outputs: ['nothing'] })
  assert.deepEqual([unknown.body.code, unknown.body.field], ['REQUEST_INVALID', 'outputs'])
  const tested = await ask('POST', '/v1/issuers/corp/test', { outputs: ['web'], worker_issuers: ['east'] })
  assert.deepEqual([tested.body.passed, tested.body.issuer.longest_lifetime_ms], [true, 86_400_000])
  const orders = (plane.scripted.made.at(-1)?.samples ?? []).map(({ kind, order }) => ({
    kind,
    ...order(generateKey('p256').spki),
  }))
  assert.deepEqual(
    orders.map(({ kind, usage, subject, ipSans }) => [kind, usage, subject.ou, ipSans]),
    [
      ['output:web', 'server', 'programs', ['192.0.2.1']],
      ['worker:east', 'client', 'workers', []],
    ],
  )
  assert.match(orders[0]?.dnsSans.join(' ') ?? '', /^issuer-test-\w+\.example db\.issuer-test-\w+\.example$/)

  const named = await list('corp')
  assert.equal(named.body.outputs[0].issuer, 'corp', JSON.stringify(named.body))
  assert.equal((await ask('PATCH', '/v1/worker-issuers/east', { signed_by: 'corp' })).body.signed_by, 'corp')
  const shown = (await ask('GET', '/v1/issuers/corp')).body
  assert.deepEqual([shown.profiles, shown.outputs, shown.worker_issuers], [[], ['web of training'], ['east']])
  // Without being told, a test takes what names it.
  await ask('POST', '/v1/issuers/corp/test', {})
  assert.deepEqual(
    plane.scripted.made.at(-1)?.samples.map(({ kind }) => kind),
    ['output:web', 'worker:east'],
  )

  const { body: document } = await ask('GET', '/v1/document')
  assert.equal(document.vclusters[0].outputs[0].issuer, 'corp')
  assert.equal(document.workerIssuers[0].signed_by, 'corp')
  const same = await ask('POST', '/v1/document/plan', { document })
  assert.deepEqual([same.status, same.body.plan], [200, null], JSON.stringify(same.body))
  document.vclusters[0].outputs[0].issuer = 'nobody'
  assert.equal((await ask('POST', '/v1/document/plan', { document })).body.code, 'OUTSIDE_ISSUER_NOT_FOUND')
  delete document.vclusters[0].outputs[0].issuer
  delete document.workerIssuers[0].signed_by
  const outputs = await ask('POST', '/v1/document/plan', { document })
  assert.equal(outputs.body.plan?.effects.length, 1, 'what a document leaves out stays as it is')
  document.workerIssuers[0].signed_by = 'built-in'
  const back = await ask('POST', '/v1/document/plan', { document })
  assert.equal(back.body.plan?.effects.length, 2, JSON.stringify(back.body))

  const kept = await ask('POST', '/v1/issuers/corp/retire', {})
  assert.deepEqual(
    [kept.body.code, kept.body.detail],
    ['ISSUER_IN_USE', 'the outputs that name it: web of training; the worker issuers that name it: east'],
  )
  assert.equal((await ask('PATCH', '/v1/worker-issuers/east', { signed_by: 'built-in' })).status, 200)
  const row = await plane.store.get('worker-issuer', 'east')
  assert.equal('signedBy' in (row?.value ?? {}), false, 'as rows of before have it')
  await list('built-in')
  assert.equal((await ask('POST', '/v1/issuers/corp/retire', {})).status, 200)
})
