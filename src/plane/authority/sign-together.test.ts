import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey, verifySignature } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { systemTimers } from '#platform/timers.ts'
import { signTogether } from './sign-together.ts'

const data = (text: string): Uint8Array => Buffer.from(text)

test('what is signed in one turn is signed with the key it was asked of, and answered each with its own', async () => {
  const together = signTogether(systemTimers)
  const keys = [generateKey('p256'), generateKey('ed25519')]
  const asked = keys.flatMap((key) =>
    ['one', 'two'].map((text) => ({ key, text, made: together(key).sign(data(text)) })),
  )
  for (const { key, text, made } of asked) {
    const signature = await made
    assert.ok(verifySignature(key.spki, data(text), signature))
    assert.ok(!verifySignature(key.spki, data(`${text}!`), signature))
  }
})

test('a key that fails, at once or later, fails for its own caller alone', async () => {
  const together = signTogether(systemTimers)
  const good = generateKey('p256')
  const broken = (sign: Signer['sign']): Signer => ({ type: 'p256', spki: good.spki, sign })
  const throws = broken(() => {
    throw new Error('the token is gone')
  })
  const rejects = broken(() => Promise.reject(new Error('the token is gone')))
  const asked = [throws, good, rejects].map(async (key) => together(key).sign(data('one')))
  const outcomes = await Promise.allSettled(asked)
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'fulfilled', 'rejected'],
  )
})
