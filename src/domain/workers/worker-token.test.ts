import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerIssuer } from './worker-issuer.ts'
import { issuerOfClaims, judgeWorkerToken } from './worker-token.ts'

const nowMs = 1_800_000_000_000
const now = nowMs / 1000
const toleranceMs = 300_000
const pod = '5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21'

const issuer: WorkerIssuer = {
  name: 'east',
  iss: 'https://cluster.example',
  aud: 'muster',
  sub: 'system:serviceaccount:a:b',
  keys: { kind: 'file', document: '{}' },
  types: [],
  vclusters: [],
  createdAtMs: 0,
  createdBy: 'operator:carol',
  removedAtMs: null,
}

const claims = (changes: Readonly<Record<string, unknown>> = {}) => ({
  ...{ iss: issuer.iss, aud: ['muster'], sub: issuer.sub, iat: now, nbf: now, exp: now + 3600 },
  'kubernetes.io': { pod: { uid: pod } },
  ...changes,
})

const judged = (changes: Readonly<Record<string, unknown>>) =>
  judgeWorkerToken({ claims: claims(changes), hash: 'h' }, toleranceMs, nowMs)
const codeOf = (changes: Readonly<Record<string, unknown>>): string | null => {
  const verdict = judged(changes)
  return verdict.kind === 'refused' ? verdict.code : null
}

test('a token leads to the issuer with exactly its issuer, its only audience and its subject', () => {
  const found = (changes: Readonly<Record<string, unknown>>) => issuerOfClaims(claims(changes), [issuer])?.name ?? null
  assert.equal(found({}), 'east')
  assert.equal(found({ aud: 'muster' }), 'east')
  for (const aud of ['other', ['muster', 'vault'], [], ['other'], null, ['muster', 'muster']])
    assert.equal(found({ aud }), null)
  for (const sub of [`${issuer.sub}x`, issuer.sub.slice(0, -1), '', null, [issuer.sub]])
    assert.equal(found({ sub }), null)
  for (const iss of [`${issuer.iss}/`, 'https://cluster.example.evil']) assert.equal(found({ iss }), null)
})

test('the instance is the pod that the token names, and without one there is no worker', () => {
  const verdict = judged({})
  assert.deepEqual(verdict, { kind: 'token', instance: pod, hash: 'h', expiresAtMs: nowMs + 3_600_000 })
  for (const named of [
    {},
    null,
    'pod',
    { pod: {} },
    { pod: { uid: 7 } },
    { pod: { uid: '../../x' } },
    { pod: { uid: 'A'.repeat(99) } },
  ])
    assert.equal(codeOf({ 'kubernetes.io': named }), 'WORKER_TOKEN_INVALID', JSON.stringify(named))
  assert.equal(codeOf({ 'kubernetes.io': { pod: Object.create({ uid: pod }) as object } }), 'WORKER_TOKEN_INVALID')
})

test('a token that has ended, begins later than clocks differ, or lives for more than a day is refused', () => {
  assert.equal(codeOf({ exp: now, iat: now - 60 }), 'WORKER_TOKEN_EXPIRED')
  assert.equal(codeOf({ iat: now + 299, nbf: now + 299, exp: now + 600 }), null)
  assert.equal(codeOf({ iat: now + 301, exp: now + 600 }), 'WORKER_TOKEN_INVALID')
  assert.equal(codeOf({ nbf: now + 301 }), 'WORKER_TOKEN_INVALID')
  assert.equal(codeOf({ exp: now + 86_400 }), null)
  assert.equal(codeOf({ exp: now + 86_401 }), 'WORKER_TOKEN_INVALID')
  assert.equal(codeOf({ iat: now + 10, exp: now + 5 }), 'WORKER_TOKEN_INVALID')
  for (const time of [null, 'soon', -1, 1e12, undefined]) assert.equal(codeOf({ exp: time }), 'WORKER_TOKEN_INVALID')
  assert.equal(codeOf({ iat: undefined }), 'WORKER_TOKEN_INVALID')
  assert.equal(codeOf({ nbf: undefined }), null)
})
