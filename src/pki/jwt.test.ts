import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cluster } from '../../test/fakes/service-accounts.ts'
import { longestJwt, parseJwks, parseJwt, verifyJwt, type JwtKey, type ParsedJwt } from './jwt.ts'

const parsed = (text: string): ParsedJwt => {
  const token = parseJwt(text)
  assert.ok(token.kind === 'jwt', JSON.stringify(token))
  return token
}

const keyIn = (text: string): JwtKey => {
  const set = parseJwks(text)
  assert.ok(set.kind === 'keys')
  const [key] = set.keys
  assert.ok(key !== undefined)
  return key
}

test('a token of RS256 or ES256 is verified by the key of its issuer, and by no other', () => {
  for (const algorithm of ['RS256', 'ES256'] as const) {
    const ours = cluster(algorithm)
    const token = parsed(ours.token())
    assert.equal(token.algorithm, algorithm)
    assert.equal(verifyJwt(token, keyIn(ours.jwks())), true)
    const theirs = { ...keyIn(cluster(algorithm).jwks()), keyId: token.keyId }
    assert.equal(verifyJwt(token, theirs), false)
  }
})

test('a token with any part changed is not verified', () => {
  const ours = cluster()
  const key = keyIn(ours.jwks())
  const [head = '', , tail = ''] = ours.token().split('.')
  const [, otherBody = ''] = ours.token().split('.')
  assert.equal(verifyJwt(parsed(`${head}.${otherBody}.${tail}`), key), false)
  const token = parsed(ours.token())
  assert.equal(verifyJwt({ ...token, signature: token.signature.subarray(1) }, key), false)
})

test('neither none nor a public key used as a secret is an algorithm here', () => {
  const ours = cluster('RS256')
  assert.deepEqual(parseJwt(ours.confused()), {
    kind: 'malformed',
    why: 'its algorithm is neither RS256 nor ES256',
  })
  assert.equal(parseJwt(ours.unsigned()).kind, 'malformed')
  assert.equal(parseJwt(ours.token({ header: { alg: 'none' } })).kind, 'malformed')
  // The key says which algorithm it is for.
  const claimed = parsed(ours.token({ header: { alg: 'ES256' } }))
  assert.equal(verifyJwt(claimed, keyIn(ours.jwks())), false)
})

test('what is no token of three parts with a key id is refused before it is verified', () => {
  const ours = cluster()
  const texts = ['', 'a.b', 'a.b.c', 'e30.e30.e30', `${ours.token()}.x`, ours.token().replace('.', '.=')]
  for (const text of [...texts, 'x'.repeat(longestJwt + 1)])
    assert.equal(parseJwt(text).kind, 'malformed', text.slice(0, 40))
  for (const header of [{ kid: undefined }, { kid: '' }, { kid: 7 }, { crit: ['exp'] }])
    assert.equal(parseJwt(ours.token({ header })).kind, 'malformed', JSON.stringify(header))
})

test('two signatures over the same claims are the same token', () => {
  const ours = cluster()
  const text = ours.token()
  const [head = '', body = ''] = text.split('.')
  assert.equal(parsed(text).hash, parsed(`${head}.${body}.AAAA`).hash)
})

test('a key set gives the keys that can verify, and neither secrets nor short, doubled or unnamed ones', () => {
  const good = JSON.parse(cluster('RS256').jwks()).keys[0]
  const setOf = (...keys: unknown[]) => parseJwks(JSON.stringify({ keys }))
  const usable = (...keys: unknown[]): number => {
    const set = setOf(...keys)
    return set.kind === 'keys' ? set.keys.length : 0
  }
  assert.equal(usable(good), 1)
  assert.equal(usable(good, { kty: 'oct', k: 'c2VjcmV0', kid: 'secret' }), 1)
  assert.equal(usable(good, good), 0)
  assert.equal(usable({ ...good, kid: undefined }), 0)
  assert.equal(usable({ ...good, use: 'enc' }), 0)
  assert.equal(usable({ ...good, alg: 'RS512' }), 0)
  assert.equal(usable({ ...good, n: good.n.slice(0, 100) }), 0)
  assert.equal(usable({ kty: 'EC', crv: 'P-521', kid: 'x', x: 'AA', y: 'AA' }), 0)
  assert.equal(usable(null, 'text', 7), 0)
  assert.equal(parseJwks('{').kind, 'malformed')
  assert.equal(parseJwks('{"keys":{}}').kind, 'malformed')
  assert.equal(setOf(...Array.from({ length: 65 }, () => good)).kind, 'malformed')
})
