import assert from 'node:assert/strict'
import { createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { wireguardKeyProblem } from './wireguard-part.ts'

const field = (1n << 255n) - 19n

const keyOf = (point: bigint): string =>
  Buffer.from(Array.from({ length: 32 }, (_, at) => Number((point >> BigInt(8 * at)) & 0xffn))).toString('base64')

/** OpenSSL refuses to share a secret with such a key. */
const keepsNothingSecret = (publicKey: string): boolean => {
  const key = Buffer.concat([Buffer.from('302a300506032b656e032100', 'hex'), Buffer.from(publicKey, 'base64')])
  const theirs = createPublicKey({ key, format: 'der', type: 'spki' })
  try {
    diffieHellman({ privateKey: generateKeyPairSync('x25519').privateKey, publicKey: theirs })
    return false
  } catch {
    return true
  }
}

test('keys as WireGuard makes them are taken', () => {
  for (let count = 0; count < 50; count++) {
    const made = generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
    assert.equal(wireguardKeyProblem(made.toString('base64')), null)
  }
})

test('a key of small order is refused, as OpenSSL refuses it, in every form it can be written in', () => {
  const small = [
    0n,
    1n,
    325606250916557431795983626356110631294008115727848805560023387167927233504n,
    39382357235489614581723060781553021112529911719440698176882885853963445705823n,
    field - 1n,
    field,
    field + 1n,
  ]
  for (const point of small) {
    assert.ok(keepsNothingSecret(keyOf(point)))
    assert.notEqual(wireguardKeyProblem(keyOf(point)), null)
    assert.notEqual(wireguardKeyProblem(keyOf(point | (1n << 255n))), null)
  }
})

test('one key has one text: with the unused bit set, or beyond the field, it is not taken', () => {
  const point = 9n
  assert.equal(wireguardKeyProblem(keyOf(point)), null)
  assert.match(wireguardKeyProblem(keyOf(point | (1n << 255n))) ?? '', /canonical/)
  assert.match(wireguardKeyProblem(keyOf(field + point)) ?? '', /canonical/)
})
