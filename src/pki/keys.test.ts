import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { keyTypes } from '#domain/core/profile.ts'
import { generateKey, keyId, keyTypeOfSpki, loadPrivateKey, spkiHash, verifySignature } from './keys.ts'
import { toPem } from './pem.ts'

const data = Buffer.from('the data')

for (const type of keyTypes) {
  test(`a ${type} key signs, and survives being written and loaded`, () => {
    const key = generateKey(type)
    assert.equal(key.type, type)
    assert.equal(keyTypeOfSpki(key.spki), type)
    const again = loadPrivateKey(key.pkcs8Pem())
    assert.deepEqual(Buffer.from(again.spki), Buffer.from(key.spki))
    assert.ok(verifySignature(key.spki, data, again.sign(data)))
    assert.ok(!verifySignature(key.spki, Buffer.from('other data'), key.sign(data)))
    assert.ok(!verifySignature(generateKey(type).spki, data, key.sign(data)))
    assert.ok(!verifySignature(key.spki, data, key.sign(data).subarray(1)))
    assert.ok(!verifySignature(key.spki, data, new Uint8Array(0)))
  })
}

test('a key is not seen when it is printed', () => {
  const key = generateKey('p256')
  assert.ok(!JSON.stringify(key).includes('PRIVATE'))
})

test('only unencrypted PKCS#8 of our key types is loaded, and the error repeats nothing of it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const refused = [
    rsa.export({ type: 'pkcs8', format: 'pem' }),
    generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    ec.export({ type: 'sec1', format: 'pem' }),
    ec.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }),
    toPem('PRIVATE KEY', Uint8Array.of(0x30, 0)),
    'enroll_secret',
    '',
  ]
  for (const pem of refused) {
    assert.throws(
      () => loadPrivateKey(pem.toString()),
      (error) => {
        assert.ok(error instanceof Error && error.message.startsWith('not a private key'))
        assert.ok(!error.message.includes('enroll_secret') && error.cause === undefined)
        return true
      },
    )
  }
})

test('the key identifier is the first 160 bits of the SHA-256 of the key bits', () => {
  const key = generateKey('p256')
  const point = key.spki.subarray(-65)
  assert.equal(keyId(key.spki), createHash('sha256').update(point).digest('hex').slice(0, 40))
  assert.equal(spkiHash(key.spki), createHash('sha256').update(key.spki).digest('hex'))
})

test('a point has one encoding: with a coordinate beyond the field it is refused', () => {
  const p = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n
  const b = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
  // The root of b, which with p = 3 mod 4 is a power of it: the y of the point whose x is 0.
  let y = 1n
  for (let e = (p + 1n) / 4n, square = b; e > 0n; e >>= 1n, square = (square * square) % p)
    if (e & 1n) y = (y * square) % p
  const spki = (x: bigint): Buffer => {
    const coordinates = [x, y].map((value) => value.toString(16).padStart(64, '0')).join('')
    return Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004' + coordinates, 'hex')
  }
  assert.equal(keyTypeOfSpki(spki(0n)), 'p256')
  assert.equal(keyTypeOfSpki(spki(p)), null)
})

test('every point of small order on Ed25519 is refused as a key', () => {
  for (const key of smallOrderKeys()) {
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key])
    assert.equal(keyTypeOfSpki(spki), null, key.toString('hex'))
  }
})

/** The eight solutions of 8·P = 0, found by computing rather than by looking them up. */
const smallOrderKeys = (): Buffer[] => {
  const p = 2n ** 255n - 19n
  const mod = (value: bigint): bigint => ((value % p) + p) % p
  const power = (base: bigint, exponent: bigint): bigint => {
    let result = 1n
    for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) if (e & 1n) result = mod(result * b)
    return result
  }
  const inverse = (value: bigint): bigint => power(value, p - 2n)
  const d = mod(-121665n * inverse(121666n))
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  type Point = readonly [bigint, bigint]
  const add = ([x1, y1]: Point, [x2, y2]: Point): Point => {
    const t = mod(d * x1 * x2 * y1 * y2)
    return [mod((x1 * y2 + y1 * x2) * inverse(1n + t)), mod((y1 * y2 + x1 * x2) * inverse(1n - t))]
  }
  const times = (factor: bigint, point: Point): Point => {
    let result: Point = [0n, 1n]
    for (let e = factor, q = point; e > 0n; e >>= 1n, q = add(q, q)) if (e & 1n) result = add(result, q)
    return result
  }
  const encoded = ([x, y]: Point): Buffer =>
    Buffer.from((y | ((x & 1n) << 255n)).toString(16).padStart(64, '0'), 'hex').reverse()
  for (let y = 2n; ; y++) {
    const square = mod((y * y - 1n) * inverse(d * y * y + 1n))
    let x = power(square, (p + 3n) / 8n)
    if (mod(x * x) !== square) x = mod(x * power(2n, (p - 1n) / 4n))
    if (mod(x * x) !== square) continue
    // Any point times the prime order has an order that divides 8; one of order 8 makes all the others.
    const point = times(order, [x, y])
    if (times(4n, point)[1] === 1n) continue
    return Array.from({ length: 8 }, (_, i) => encoded(times(BigInt(i), point)))
  }
}
