import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replacedBy, replacedKey, rotated, rotationConfirmed } from './recovery-credential.ts'

const key = { kind: 'key', spki: 'one', publicKey: 'first', registeredAtMs: 1 } as const
const next = { kind: 'key', spki: 'two', publicKey: 'second' } as const

test('a key that was replaced with a certificate that was never used did not arrive: the next renewal has the one before', () => {
  const replaced = replacedBy(key, next, 2)
  assert.deepEqual(
    rotated(replaced, () => null),
    { ...key, registeredAtMs: 2 },
  )
  assert.deepEqual(rotationConfirmed(replaced), { ...next, registeredAtMs: 2 })
  assert.deepEqual(
    rotated(rotationConfirmed(replaced), () => null),
    { ...next, registeredAtMs: 2 },
  )
})

test('both of two keys that are good can be replaced, and what is kept beside the new one is the key that signed', () => {
  const replaced = replacedBy(key, next, 2)
  const third = { kind: 'key', spki: 'three', publicKey: 'third' } as const
  for (const [replaces, former] of [
    ['one', 'one'],
    ['two', 'two'],
  ] as const) {
    const signer = replacedKey(replaced, { ...third, replaces })
    assert.ok(signer !== null)
    assert.equal(replacedBy(signer, third, 3).former?.spki, former)
  }
  assert.equal(replacedKey(replaced, third), null)
  assert.equal(replacedKey(replaced, { ...third, replaces: 'four' }), null)
})
