import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { formatStatement, type Challenge } from '#wire/core/statement.ts'
import { verifyChallenge, type Expected } from './statement-check.ts'

const key = generateKey('p256')
const other = generateKey('p256')
const pinned = (...keys: readonly (typeof key)[]): string[] =>
  keys.map(({ spki }) => Buffer.from(spki).toString('base64'))

const value: Challenge = { domain: 'example.test', node: null, nonce: 'n'.repeat(32), salt: 's', time_ms: 1_780_000 }
const expected: Expected = { statementKeys: pinned(key), domain: 'example.test', nonce: value.nonce, node: null }
const made = (change: Partial<Challenge> = {}, by = key): string =>
  formatStatement('challenge', { ...value, ...change }, (bytes) => by.sign(bytes))

test('a challenge of the plane for our nonce states the time', () => {
  const text = made()
  assert.deepEqual(verifyChallenge(text, expected), { timeMs: value.time_ms, challenge: text })
})

test('any of several pinned keys may have signed it', () => {
  assert.ok(verifyChallenge(made(), { ...expected, statementKeys: pinned(other, key) }))
})

test('a challenge for a node is for that node', () => {
  const text = made({ node: 'gpu-001' })
  assert.ok(verifyChallenge(text, { ...expected, node: 'gpu-001' }))
  assert.equal(verifyChallenge(text, { ...expected, node: 'gpu-002' }), null)
  assert.equal(verifyChallenge(text, expected), null)
})

const worthless: readonly (readonly [string, string])[] = [
  ['signed by another key', made({}, other)],
  ['replayed from an answer to another nonce', made({ nonce: 'm'.repeat(32) })],
  ['of another domain', made({ domain: 'elsewhere.test' })],
  ['with a time that was changed after signing', tampered({ time_ms: 1 })],
  ['from after the end of time', made({ time_ms: Number.MAX_SAFE_INTEGER })],
  ['without a signature', made().split('.').slice(0, 2).join('.')],
  ['that is a counter', made().replace(/^challenge1/, 'counter1')],
  ['that is nothing', ''],
]

function tampered(change: Partial<Challenge>): string {
  const [kind, , signature] = made().split('.')
  return [kind, Buffer.from(JSON.stringify({ ...value, ...change })).toString('base64url'), signature].join('.')
}

for (const [what, text] of worthless) {
  test(`a challenge ${what} is not believed`, () => assert.equal(verifyChallenge(text, expected), null))
}

test('a key that is not one signs nothing', () => {
  assert.equal(verifyChallenge(made(), { ...expected, statementKeys: ['', 'AAAA', '%%'] }), null)
})
