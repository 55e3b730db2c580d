import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { test } from 'node:test'
import { generateKey, type KeyType } from './keys.ts'
import { makeJwt } from './make-jwt.ts'
import { publicJwk, readProvisionerKey } from './private-jwk.ts'

const types: readonly KeyType[] = ['p256', 'p384', 'ed25519']
const jwkOf = (type: KeyType) => createPrivateKey(generateKey(type).pkcs8Pem()).export({ format: 'jwk' })

test('a key of each type is read as JSON and as PEM, and both have the thumbprint for an id', () => {
  for (const type of types) {
    const jwk = jwkOf(type)
    const fromJwk = readProvisionerKey(JSON.stringify(jwk))
    assert.ok(fromJwk.kind === 'key')
    const fromPem = readProvisionerKey(fromJwk.key.pkcs8Pem())
    assert.ok(fromPem.kind === 'key')
    assert.deepEqual([fromPem.keyId, fromPem.key.spki], [fromJwk.keyId, fromJwk.key.spki])
    const { d, ...publicHalf } = jwk
    assert.deepEqual(publicJwk(fromJwk.key.spki), publicHalf)
    assert.ok(typeof d === 'string')
  }
})

// RFC 8037, appendix A.3.
test('the thumbprint is that of RFC 7638', () => {
  const jwk = {
    kty: 'OKP',
    crv: 'Ed25519',
    d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
    x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  }
  const read = readProvisionerKey(JSON.stringify(jwk))
  assert.ok(read.kind === 'key')
  assert.equal(read.keyId, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
})

test('an id in the text is taken', () => {
  const read = readProvisionerKey(JSON.stringify({ ...jwkOf('p256'), kid: 'muster', use: 'sig' }))
  assert.ok(read.kind === 'key')
  assert.equal(read.keyId, 'muster')
})

test('what is no such key is refused with a reason that repeats nothing of it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p521 = generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey
  const { d, ...publicHalf } = jwkOf('p256')
  const cases: readonly [string, RegExp][] = [
    ['', /neither a JSON Web Key nor PEM/],
    ['"text"', /neither a JSON Web Key nor PEM/],
    ['null', /neither a JSON Web Key nor PEM/],
    ['eyJhbGciOiJQQkVTMiJ9.a.b.c.d', /encrypted.*step crypto jwe decrypt/],
    ['{"protected":"x","ciphertext":"y"}', /encrypted/],
    [JSON.stringify(publicHalf), /only the public half/],
    [JSON.stringify(rsa.export({ format: 'jwk' })), /an RSA key/],
    [JSON.stringify(p521.export({ format: 'jwk' })), /P-256, P-384 or Ed25519/],
    [JSON.stringify({ ...jwkOf('p256'), kid: 7 }), /kid is not a text/],
    [JSON.stringify({ ...jwkOf('p256'), d: 'secret' }), /not a private key/],
    [rsa.export({ type: 'pkcs8', format: 'pem' }).toString(), /not a private key/],
    ['x'.repeat(9000), /more than 8192 characters/],
  ]
  for (const [text, why] of cases) {
    const read = readProvisionerKey(text)
    assert.ok(read.kind === 'malformed', text)
    assert.match(read.why, why)
    assert.doesNotMatch(read.why, /secret/)
  }
  assert.ok(typeof d === 'string')
})

test('a token that is made with a key of each type verifies, a hundred times', () => {
  const algorithms = { p256: 'ES256', p384: 'ES384', ed25519: 'EdDSA' }
  for (const type of types) {
    const key = generateKey(type)
    const publicKey = createPublicKey({ key: Buffer.from(key.spki), format: 'der', type: 'spki' })
    const digest = type === 'ed25519' ? null : type === 'p256' ? 'sha256' : 'sha384'
    // Numbers in a signature have leading zeros now and then.
    for (let count = 0; count < 100; count++) {
      const [header = '', claims = '', signature = ''] = makeJwt(key, { kid: 'k' }, { sub: 'ü', count }).split('.')
      const bytes = Buffer.from(signature, 'base64url')
      const signed = Buffer.from(`${header}.${claims}`)
      assert.ok(verify(digest, signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes))
      assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), {
        alg: algorithms[type],
        typ: 'JWT',
        kid: 'k',
      })
      assert.deepEqual(JSON.parse(Buffer.from(claims, 'base64url').toString()), { sub: 'ü', count })
    }
  }
})
