import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  domainRow,
  hour,
  minute,
  nodeRow,
  neverKnown,
  noonMs,
  profileRow,
  tokenRow,
} from '../../../test/fakes/sample-rows.ts'
import { tokenStatus } from '#domain/core/token.ts'
import { decideCreateToken, decideRevokeToken, type CreateTokenFacts } from './token.ts'

const facts: CreateTokenFacts = {
  tokenId: 't1',
  secretHash: 'hash-of-secret',
  nodeId: 'gpu-001',
  node: nodeRow('registered'),
  former: null,
  profile: profileRow('gpu-cloud'),
  replace: false,
  serverName: 'dns:plane.example',
  ttlMs: null,
  domain: domainRow(),
  by: alice,
  nowMs: noonMs,
}
const approved = [{ by: 'operator:bob', atMs: noonMs }]
const mesh = { profile: profileRow('mesh-paas') }

test('a token for a registered node lives as long as its profile says', () => {
  const verdict = expectDecided(decideCreateToken(facts))
  assert.equal(verdict.registered, false)
  assert.equal(verdict.token.expiresAtMs, noonMs + 30 * minute)
  assert.deepEqual(verdict.token.state, { kind: 'unused' })
  assert.deepEqual(readsOf(verdict), [
    'token/hash-of-secret@0',
    'profile/gpu-cloud@5',
    'domain/domain@3',
    'node/gpu-001@7',
  ])
})

test('the journal has the fields of seed 002 for a created token', () => {
  const [created] = expectDecided(decideCreateToken(facts)).change.entries
  assert.equal(created.type, 'enrollment_token.created')
  assert.equal(created.token, 't1')
  assert.deepEqual(created.body, {
    token_id: 't1',
    created_by: 'operator:alice',
    expires_at: '2030-01-01T12:30:00.000Z',
    timestamp: '2030-01-01T12:00:00.000Z',
    node: 'gpu-001',
    profile: 'gpu-cloud',
    replace: false,
  })
  assert.ok(!JSON.stringify(created).includes(facts.secretHash))
})

test('a token for an unknown node registers it, and the journal says both', () => {
  const verdict = expectDecided(decideCreateToken({ ...facts, node: null, former: neverKnown }))
  assert.equal(verdict.registered, true)
  assert.deepEqual(entryTypesOf(verdict), ['node.registered', 'enrollment_token.created'])
  assert.equal(writesOf(verdict, 'node').length, 1)
  assert.ok(readsOf(verdict).includes('node/gpu-001@0'))
})

test('an active node gets only a token that may replace it', () => {
  const active = { ...facts, node: nodeRow('active') }
  expectRefused(decideCreateToken(active), 'ALREADY_ACTIVE', /--node gpu-001 --replace/)
  assert.equal(expectDecided(decideCreateToken({ ...active, replace: true })).token.replace, true)
})

test('an enrolled or inactive node is readmitted, where the profile asks, only when approved', () => {
  for (const kind of ['enrolled', 'inactive'] as const) {
    expectDecided(decideCreateToken({ ...facts, node: nodeRow(kind) }))
    const waiting = nodeRow(kind, { profile: 'mesh-paas' })
    expectRefused(decideCreateToken({ ...facts, ...mesh, node: waiting }), 'APPROVAL_REQUIRED', /approve gpu-001/)
    const node = nodeRow(kind, { profile: 'mesh-paas', approvals: approved })
    expectDecided(decideCreateToken({ ...facts, ...mesh, node }))
  }
})

test('a revoked or quarantined node gets no token', () => {
  expectRefused(decideCreateToken({ ...facts, node: nodeRow('revoked') }), 'NODE_REVOKED')
  expectRefused(decideCreateToken({ ...facts, node: nodeRow('quarantined') }), 'NODE_QUARANTINED')
})

test('a domain token needs a profile that allows it, and replaces no node', () => {
  const stranger = { ...facts, nodeId: null, node: null }
  expectRefused(decideCreateToken(stranger), 'JOIN_METHOD_NOT_ALLOWED', /--node ID/)
  const verdict = expectDecided(decideCreateToken({ ...stranger, ...mesh }))
  assert.deepEqual(verdict.token.scope, { kind: 'domain' })
  assert.equal(verdict.registered, false)
  assert.deepEqual(writesOf(verdict, 'node'), [])
  expectRefused(decideCreateToken({ ...stranger, ...mesh, replace: true }), 'REQUEST_INVALID', /--node/)
})

test('a profile without tokens gets none, and a token does not change a profile', () => {
  const hardware = { ...facts, profile: profileRow('hpc-diskless'), node: null }
  expectRefused(decideCreateToken(hardware), 'JOIN_METHOD_NOT_ALLOWED', /asks for hardware/)
  expectRefused(decideCreateToken({ ...facts, ...mesh }), 'NODE_STATE_CONFLICT', /under profile gpu-cloud/)
})

test('a token lives more than nothing and at most a day', () => {
  for (const ttlMs of [0, -1, 24 * hour + 1, Number.NaN, 1.5]) {
    expectRefused(decideCreateToken({ ...facts, ttlMs }), 'SETTING_INVALID')
  }
  assert.equal(expectDecided(decideCreateToken({ ...facts, ttlMs: 24 * hour })).token.expiresAtMs, noonMs + 24 * hour)
})

test('a name too long for a certificate is said to the operator, not later to the machine', () => {
  const domain = domainRow({ name: `${'long.'.repeat(12)}example` })
  expectRefused(decideCreateToken({ ...facts, domain }), 'PROFILE_INVALID', /64 characters/)
})

test('an unused or bound token can be withdrawn, once', () => {
  const verdict = expectDecided(decideRevokeToken({ token: tokenRow(), by: alice, nowMs: noonMs }))
  assert.deepEqual(verdict.token.state, { kind: 'revoked', by: 'operator:alice', atMs: noonMs })
  assert.deepEqual(entryTypesOf(verdict), ['enrollment_token.revoked'])
  assert.deepEqual(readsOf(verdict), ['token/hash-of-secret@7'])
  const bound = tokenRow({ state: { kind: 'bound', spki: 'k', node: 'gpu-001' } })
  expectDecided(decideRevokeToken({ token: bound, by: alice, nowMs: noonMs }))
  const again = tokenRow({ state: verdict.token.state })
  expectRefused(decideRevokeToken({ token: again, by: alice, nowMs: noonMs }), 'TOKEN_INVALID', /operator:alice/)
})

test('a used token cannot be withdrawn, and the refusal names who used it', () => {
  const token = tokenRow({ state: { kind: 'used', spki: 'k', node: 'gpu-001', atMs: noonMs } })
  expectRefused(decideRevokeToken({ token, by: alice, nowMs: noonMs }), 'TOKEN_USED', /^gpu-001 enrolled/)
})

test('only a token that could still be used expires', () => {
  const { value } = tokenRow()
  assert.equal(tokenStatus(value, value.expiresAtMs - 1), 'unused')
  assert.equal(tokenStatus(value, value.expiresAtMs), 'expired')
  const state = { kind: 'used', spki: 'k', node: 'gpu-001', atMs: noonMs } as const
  assert.equal(tokenStatus({ ...value, state }, value.expiresAtMs), 'used')
  const revoked = { kind: 'revoked', by: 'operator:bob', atMs: noonMs } as const
  assert.equal(tokenStatus({ ...value, state: revoked }, value.expiresAtMs), 'revoked')
})
