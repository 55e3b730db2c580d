import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretName } from './request-text.ts'

test('a secret in a field that names something is found, and nowhere else', () => {
  const secret = `muster_key_${'a'.repeat(43)}`
  assert.equal(secretName({ name: secret, role: 'viewer' }), 'name')
  assert.equal(secretName({ tags: ['x', `x.${secret}`] }), 'tags')
  assert.equal(secretName({ reason: `lost ${secret}` }), null)
  assert.equal(secretName({ enrollment_token: `enroll_${'a'.repeat(43)}` }), null)
  assert.equal(secretName({ name: 'muster_key_of_ada', id: null }), null)
  assert.equal(secretName(undefined), null)
})
