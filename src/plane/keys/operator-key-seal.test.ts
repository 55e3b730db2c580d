import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OperatorKey } from '#domain/core/principal.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import { systemRandom } from '#platform/random.ts'
import { openKeySeal } from './operator-key-seal.ts'
import { sealingKeyOf } from './seal.ts'

const sealing = sealingKeyOf(Buffer.alloc(32, 5), systemRandom)
const { seal, isSealed } = openKeySeal(sealing, () => 'lab.example')

const key: OperatorKey = {
  ...{ id: 'k1', name: 'ada', role: 'operator', hash: 'ab', createdBy: 'operator:root', createdAtMs: 1 },
  ...{ revokedAtMs: null, expiresAtMs: null },
}

test('a key without an end has the MAC that releases before 0.5 made', () => {
  const { expiresAtMs: _none, ...before } = key
  const mac = sealing.mac('operator key', canonicalJson({ domain: 'lab.example', ...before }))
  assert.equal(seal(key).mac, mac)
  assert.ok(isSealed({ ...before, mac } as OperatorKey), 'a row that lacks the field')
})

test('the end of a key is covered: moved, taken out or put in, the row grants nothing', () => {
  const expiring = seal({ ...key, expiresAtMs: 9 })
  assert.ok(isSealed(expiring))
  const { expiresAtMs: _end, ...without } = expiring
  const altered = [
    { ...expiring, expiresAtMs: 10 },
    { ...expiring, expiresAtMs: null },
    without,
    { ...seal(key), expiresAtMs: 9 },
  ]
  for (const row of altered) assert.equal(isSealed(row as OperatorKey), false, JSON.stringify(row))
})
