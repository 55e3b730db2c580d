import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathOf } from './endpoint.ts'

test('a path has its parameters filled in, escaped, so that none of them can lead to another call', () => {
  assert.equal(pathOf({ path: '/v1/enroll' }), '/v1/enroll')
  assert.equal(pathOf({ path: '/v1/nodes/:id/renew' }, { id: 'gpu-001' }), '/v1/nodes/gpu-001/renew')
  assert.equal(pathOf({ path: '/v1/nodes/:id/renew' }, { id: '../ca?x' }), '/v1/nodes/..%2Fca%3Fx/renew')
})
