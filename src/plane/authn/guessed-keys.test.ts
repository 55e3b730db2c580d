import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { limitGuesses, type AuthenticateOperator } from './guessed-keys.ts'

const setUp = () => {
  const clock = manualClock(0)
  const reads: string[] = []
  const authenticate: AuthenticateOperator = async (authorization, source) => {
    reads.push(authorization ?? '')
    return authorization?.startsWith('good') === true
      ? { kind: 'operator', id: 'k', name: 'ada', role: 'viewer', credential: { by: 'operator-key' }, source }
      : refuse('OPERATOR_KEY_INVALID')
  }
  const limited = limitGuesses(authenticate, clock)
  const outcome = async (authorization: string | undefined, source: string): Promise<string> => {
    const result = await limited(authorization, source, false)
    return isRefusal(result) ? result.code : 'operator'
  }
  return { clock, reads, outcome }
}

test('a source that guesses operator keys is refused without a read of the store after 60 a minute', async () => {
  const { clock, reads, outcome } = setUp()
  for (let i = 0; i < 60; i++) assert.equal(await outcome(`bad ${i}`, '192.0.2.1'), 'OPERATOR_KEY_INVALID')
  for (let i = 0; i < 1000; i++) assert.equal(await outcome(`worse ${i}`, '192.0.2.1'), 'RATE_LIMITED')
  assert.equal(reads.length, 60)
  assert.equal(await outcome('bad', '192.0.2.2'), 'OPERATOR_KEY_INVALID')
  clock.advance(60_000)
  assert.equal(await outcome('bad', '192.0.2.1'), 'OPERATOR_KEY_INVALID')
})

test('an operator whose key has worked keeps working beside an attacker at the same address', async () => {
  const { outcome } = setUp()
  assert.equal(await outcome('good', '192.0.2.1'), 'operator')
  for (let i = 0; i < 100; i++) await outcome(`bad ${i}`, '192.0.2.1')
  assert.equal(await outcome('bad', '192.0.2.1'), 'RATE_LIMITED')
  for (let i = 0; i < 100; i++) assert.equal(await outcome('good', '192.0.2.1'), 'operator')
})

test('callers on the Unix socket and calls without a key are not charged', async () => {
  const { outcome } = setUp()
  for (let i = 0; i < 100; i++) assert.equal(await outcome(`bad ${i}`, 'local'), 'OPERATOR_KEY_INVALID')
  for (let i = 0; i < 100; i++) assert.equal(await outcome(undefined, '192.0.2.1'), 'OPERATOR_KEY_INVALID')
  assert.equal(await outcome('bad', '192.0.2.1'), 'OPERATOR_KEY_INVALID')
})

test('the memory of keys that worked is bounded', async () => {
  const { outcome } = setUp()
  for (let i = 0; i < 1000; i++) assert.equal(await outcome(`good ${i}`, '192.0.2.1'), 'operator')
  for (let i = 0; i < 60; i++) await outcome(`bad ${i}`, '192.0.2.1')
  assert.equal(await outcome('good 999', '192.0.2.1'), 'operator')
  assert.equal(await outcome('good 0', '192.0.2.1'), 'RATE_LIMITED')
})

test('many sources that guess do not lock out an operator who comes from another address', async () => {
  const { outcome } = setUp()
  for (let i = 0; i < 200; i++)
    for (let each = 0; each < 61; each++) await outcome(`bad ${i} ${each}`, `2001:db8:${i.toString(16)}::1`)
  assert.equal(await outcome('good', '192.0.2.1'), 'operator')
})
