import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { hierarchy } from '../../../test/vectors/pki-hierarchy.ts'
import {
  faultOfIssuerRoots,
  faultOfNewRoots,
  faultOfRecoveryFields,
  issuerRootsFrom,
  recoveryFrom,
  type RecoveryFields,
} from './certificate-answer.ts'

const rootPem = (): string => toPem('CERTIFICATE', hierarchy('p256', 1_800_000_000_000).root.certificate.der)
const [old, next, stranger] = [rootPem(), rootPem(), rootPem()]

test('roots are exchanged one after the other', () => {
  assert.equal(faultOfNewRoots([old], [old]), null)
  assert.equal(faultOfNewRoots([old], [next, old]), null)
  assert.equal(faultOfNewRoots([next, old], [next]), null)
})

test('a set with none of the roots in use is not taken: it would lock the machine out', () => {
  assert.equal(faultOfNewRoots([old], [stranger]), 'none of the roots in use')
  assert.equal(faultOfNewRoots([old], []), 'no roots, or too many')
  assert.equal(faultOfNewRoots([old], ['x', old]), 'a root is malformed')
})

test('a set of roots of issuers is kept whole, and one that is unfit costs nothing but itself', () => {
  const kept = { revision: 5, roots: [old] }
  const given = { revision: 6, roots: [next, stranger] }
  assert.deepEqual(issuerRootsFrom(given, kept), given)
  assert.deepEqual(issuerRootsFrom({ revision: 0, roots: [] }, kept), { revision: 0, roots: [] })
  assert.deepEqual(issuerRootsFrom(undefined, kept), kept)
  for (const unfit of [
    { revision: 6, roots: [] },
    { revision: 0, roots: [next] },
    { revision: 6, roots: ['x'] },
    { revision: 6, roots: Array.from({ length: 33 }, () => next) },
    { revision: 6, roots: [`${next}${' '.repeat(48_000)}`] },
  ]) {
    assert.notEqual(faultOfIssuerRoots(unfit), null)
    assert.deepEqual(issuerRootsFrom(unfit, kept), kept)
  }
})

const about = { domain: 'example.test', nodeId: 'gpu-001' }
const profile = {
  name: 'x',
  key_storage: 'file',
  key_types: [],
  lifetime_ms: 9,
  renew_from: 0.5,
  renew_to: 0.6,
} as const
const counterOf = (node: string): string =>
  formatStatement('counter', { domain: 'example.test', node, epoch: 1, counter: 3 }, () => new Uint8Array(64))
const trust = { roots: [old], statement_keys: [Buffer.from(generateKey('p256').spki).toString('base64')] }
const token = `recover_${'b'.repeat(43)}`
const answer = (change: Partial<RecoveryFields>): RecoveryFields => ({
  profile: { ...profile, key_types: [] },
  counter: counterOf('gpu-001'),
  recovery_trust: trust,
  clock_tolerance_ms: 300_000,
  ...change,
})

test('what comes with a certificate is taken only if the next recovery can use it', () => {
  assert.equal(faultOfRecoveryFields(answer({}), about), null)
  assert.equal(faultOfRecoveryFields({ profile: answer({}).profile }, about), null)
  assert.equal(faultOfRecoveryFields(answer({ counter: 'counter1.x.y' }), about), 'the counter is malformed')
  assert.equal(
    faultOfRecoveryFields(answer({ counter: counterOf('gpu-002') }), about),
    'the counter is of another node',
  )
  assert.equal(faultOfRecoveryFields(answer({ recovery_token: 'x' }), about), 'the recovery token is malformed')
  assert.match(faultOfRecoveryFields(answer({ clock_tolerance_ms: 0 }), about) ?? '', /tolerance/)
  assert.match(
    faultOfRecoveryFields(answer({ recovery_trust: { ...trust, roots: ['x'] } }), about) ?? '',
    /root is malformed/,
  )
  assert.match(
    faultOfRecoveryFields(answer({ recovery_trust: { ...trust, statement_keys: ['x'] } }), about) ?? '',
    /keys/,
  )
})

test('how a node comes back follows from what it registered, what the plane gave, and what the profile allows', () => {
  const key = { kind: 'key', keyType: 'p256', keyPem: 'k' } as const
  assert.deepEqual(recoveryFrom(answer({}), key, null), { trust, credential: key })
  const bearer = { trust, credential: { kind: 'bearer', token } }
  assert.deepEqual(recoveryFrom(answer({ recovery_token: token }), { kind: 'none' }, null), bearer)
  const denied = answer({ profile: { ...answer({}).profile, recovery: { mode: 'deny', rehearse_every_ms: 1 } } })
  assert.deepEqual(recoveryFrom(denied, key, null), { trust, credential: { kind: 'none' } })
  const dropped = answer({ recovery_registered: false, recovery_token: token })
  assert.deepEqual(recoveryFrom(dropped, key, { trust, credential: key }), { trust, credential: { kind: 'none' } })
  const older = { profile: answer({}).profile }
  assert.equal(recoveryFrom(older, key, null), null)
  assert.deepEqual(recoveryFrom(older, key, { trust, credential: key }), { trust, credential: key })
})
