// Whose tokens are taken, as operators say it, also several at once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cluster } from '../fakes/service-accounts.ts'
import { setUpOperatorServer } from './operator-setup.ts'

test('of worker issuers for the same tokens that are added at once, or changed to be so, one is there', async (t) => {
  const { call } = await setUpOperatorServer(t)
  const east = cluster()
  const add = (name: string, sub: string) =>
    call('platform-admin', 'POST', '/v1/worker-issuers', {
      ...{ name, iss: east.iss, aud: east.aud, sub, jwks: east.jwks(), types: [], vclusters: [] },
    })
  const names = ['north', 'east', 'south', 'west']
  const same = await Promise.all(names.map((name) => add(name, 'the same')))
  assert.deepEqual(same.map(({ status }) => status).toSorted(), [201, 409, 409, 409], JSON.stringify(same))
  assert.ok(same.every(({ status, body }) => status === 201 || body.code === 'WORKER_ISSUER_EXISTS'))
  const added = names[same.findIndex(({ status }) => status === 201)] ?? ''

  for (const name of ['one', 'other']) assert.equal((await add(name, name)).status, 201)
  const change = { sub: 'changed' }
  const changed = await Promise.all(
    ['one', 'other'].map((name) => call('platform-admin', 'PATCH', `/v1/worker-issuers/${name}`, change)),
  )
  assert.deepEqual(changed.map(({ status }) => status).toSorted(), [200, 409], JSON.stringify(changed))

  const declared = ['first', 'second'].map((name) => ({
    ...{ name, iss: east.iss, aud: east.aud, sub: 'declared', jwks: east.jwks(), types: [], vclusters: [] },
  }))
  const document = { apiVersion: 'muster/v1', workerIssuers: declared }
  const planned = await call('platform-admin', 'POST', '/v1/document/plan', { document })
  assert.deepEqual([planned.body.code, planned.body.field], ['WORKER_ISSUER_EXISTS', 'document.workerIssuers.1.sub'])

  // One that was removed is in the way of none.
  assert.equal((await call('platform-admin', 'POST', `/v1/worker-issuers/${added}/remove`, {})).status, 200)
  assert.equal((await add('again', 'the same')).status, 201)
})
