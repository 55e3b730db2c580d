import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noKeyClaims } from '#domain/identity/key-claim.ts'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  domainRow,
  doubtedDomainRow,
  haltedDomainRow,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  repair,
  row,
  slots,
  tokenRow,
  neverKnown,
} from '../../../test/fakes/sample-rows.ts'
import { decideEnroll, recordEnrollment, type EnrollFacts } from './enrollment.ts'
import { noHardware, type ConditionName, type Membership, type Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { Token } from '#domain/core/token.ts'
import { nothingHeld } from '#domain/network/wireguard-part.ts'

const facts = (changes: Partial<EnrollFacts> = {}): EnrollFacts => ({
  credential: { method: 'token', token: tokenRow(), state: 'unused' },
  node: nodeRow('inactive', { counter: 5, recovery: keyRecovery(), repair: repair() }),
  former: changes.node === null ? neverKnown : null,
  nodeId: 'gpu-001',
  profile: profileRow('gpu-cloud'),
  domain: domainRow(),
  key: { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: 'new-key' },
  keyBan: null,
  keyClaims: noKeyClaims,
  reported: { hardware: noHardware, facts: null },
  recovery: null,
  proof: null,
  wireguard: null,
  wireguardHeld: nothingHeld,
  probe: 'not-tried',
  holders: null,
  withdrawn: [],
  orderId: 'o1',
  by: alice,
  nowMs: noonMs,
  ...changes,
})

const issued = {
  issuer: 'ca1',
  serial: 'b1',
  spki: 'new-key',
  sha256: 'hash-of-b1',
  issuedAtMs: noonMs,
  notAfterMs: noonMs + 24 * hour,
  der: '',
  order: 'o1',
}

const enroll = (changes: Partial<EnrollFacts> = {}, nextBearerHash: string | null = null) => {
  const verdict = decideEnroll(facts(changes))
  assert.ok(verdict.kind === 'admitted', JSON.stringify(verdict))
  return recordEnrollment(verdict, issued, () => nextBearerHash)
}

const recoveryKey = { kind: 'key', spki: 'recovery-key', publicKey: 'cHVibGlj' } as const

test('an enrollment counts, registers what the node recovers by, and says so', () => {
  const { node, change } = enroll({ recovery: recoveryKey })
  assert.equal(node.counter, 6)
  assert.deepEqual(node.recovery, {
    credential: { ...recoveryKey, registeredAtMs: noonMs },
    recoveredAtMs: [],
    denied: null,
    episode: null,
  })
  const body = change.entries.at(-1)?.body
  assert.deepEqual([body?.['recovery'], body?.['counter']], ['key', 6])
  const token = enroll({ recovery: { kind: 'bearer' } }, 'h1').node.recovery?.credential
  assert.deepEqual(token, { kind: 'bearer', hash: 'h1', former: null, registeredAtMs: noonMs })
})

test('an enrollment without a registration leaves no earlier credential and no repair', () => {
  const { node } = enroll()
  assert.deepEqual([node.recovery, node.repair, node.rehearsal], [null, null, null])
})

test('where the profile denies recovery nothing is registered', () => {
  const base = profileRow('gpu-cloud').value
  const profile = profileRow('gpu-cloud', { recovery: { ...base.recovery, mode: 'deny' } })
  assert.equal(enroll({ profile, recovery: recoveryKey }).node.recovery, null)
})

test('a caller that proves the registered recovery key replaces an active identity; another key does not', () => {
  const node = nodeRow('active', { recovery: keyRecovery() })
  const { change } = enroll({ node, recovery: recoveryKey })
  assert.ok(change.entries.some(({ type }) => type === 'node.superseded'))
  expectRefused(decideEnroll(facts({ node, recovery: { ...recoveryKey, spki: 'another' } })), 'ALREADY_ACTIVE')
  expectRefused(decideEnroll(facts({ node })), 'ALREADY_ACTIVE')
  const profile = profileRow('gpu-cloud', { onActiveConflict: 'reject' })
  expectRefused(decideEnroll(facts({ node, profile, recovery: recoveryKey })), 'ALREADY_ACTIVE')
})

const certificateKey = (counter = 5, spki = 'key-of-a1'): NonNullable<EnrollFacts['proof']> => ({
  spki,
  counter: { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter },
  ban: null,
  claim: row({ spki, holders: [{ node: 'gpu-001', use: 'tls', sinceMs: noonMs }] }),
})

test('ruling 23: where another key has to be proven, the key of the newest certificate is proof, and an earlier one a copy', () => {
  const proving = (kind: Membership['kind'], changes: Partial<EnrollFacts> = {}, node: Partial<Node> = {}) =>
    decideEnroll(facts({ node: nodeRow(kind, { counter: 5, ...node }), proof: certificateKey(), ...changes }))
  const under = (name: ConditionName) => ({ conditions: [{ name, sinceMs: noonMs, reason: 'r', evidence: {} }] })
  const conflict = (onActiveConflict: Profile['onActiveConflict']) => ({
    profile: profileRow('gpu-cloud', { onActiveConflict }),
  })
  assert.equal(proving('active').kind, 'admitted')
  const { change } = enroll({ node: nodeRow('active', { counter: 5 }), proof: certificateKey() })
  const superseded = change.entries.find(({ type }) => type === 'node.superseded')
  assert.equal(superseded?.body['proven_by'], 'certificate key')
  // A ban that comes between the decision and its commit beats it.
  assert.ok(change.reads.some(({ row: kind, key }) => kind === 'key-ban' && key === 'key-of-a1'))
  expectRefused(proving('quarantined'), 'NODE_QUARANTINED')
  expectRefused(proving('revoked'), 'NODE_REVOKED')
  expectRefused(proving('active', {}, under('duplicate_identity')), 'DUPLICATE_IDENTITY', /not settled/)
  assert.equal(proving('active', {}, under('spoof_suspected')).kind, 'admitted')
  expectRefused(proving('active', { proof: certificateKey(4) }), 'DUPLICATE_IDENTITY', /replaced/)
  expectRefused(proving('active', { proof: certificateKey(5, 'key-of-years-ago') }), 'DUPLICATE_IDENTITY', /replaced/)
  expectRefused(proving('active', { proof: { ...certificateKey(5, 'any'), claim: null } }), 'ALREADY_ACTIVE')
  expectRefused(proving('active', conflict('reject')), 'ALREADY_ACTIVE')
  assert.equal(proving('active', conflict('probe')).kind, 'probe')
})

test('an enrollment keeps the hardware that was reported with it', () => {
  const hardware = { macs: ['02:00:00:00:00:0a'], bmcSerial: 'SN-1' }
  const { node } = enroll({ reported: { hardware, facts: null } })
  assert.deepEqual(node.reportedHardware, { ...hardware, epoch: node.epoch })
})

test('a token of the domain lets in no node where the profile asks for a token of the node, whether the node is known or new', () => {
  const token = tokenRow({ scope: { kind: 'domain' } })
  const credential = { method: 'token', token, state: 'unused' } as const
  const newcomer = { credential, node: null, nodeId: 'gpu-009' } as const
  expectRefused(decideEnroll(facts({ credential })), 'JOIN_METHOD_NOT_ALLOWED', /a token made for the node/)
  expectRefused(decideEnroll(facts(newcomer)), 'JOIN_METHOD_NOT_ALLOWED', /a token made for the node/)
  const { join } = profileRow('gpu-cloud').value
  const profile = profileRow('gpu-cloud', { join: { ...join, tokenScope: 'domain' } })
  assert.equal(enroll({ ...newcomer, profile }).node.id, 'gpu-009')
})

test('a recovery key is another key than the one that is certified', () => {
  expectRefused(decideEnroll(facts({ recovery: { ...recoveryKey, spki: 'new-key' } })), 'CSR_INVALID', /another key/)
})

test('an expired answer that was lost is issued again for the key that used the token, and for no other', () => {
  const lost = { ...slots().current, spki: 'new-key', notAfterMs: noonMs - 1 }
  const node = (kind: 'enrolled' | 'active') =>
    nodeRow(kind, { membership: { ...memberships[kind], slots: slots({ current: lost }) } })
  const taken = (changes: Partial<Token> = {}) => {
    const state = { kind: 'used', spki: 'new-key', node: 'gpu-001', atMs: noonMs - minute } as const
    return { method: 'token', token: tokenRow({ state, ...changes }), state: 'taken' } as const
  }
  const again = enroll({ credential: taken(), node: node('enrolled') })
  assert.equal(again.node.epoch, node('enrolled').value.epoch + 1)
  assert.ok(again.change.writes.some(({ put }) => put === 'denial'))
  const refused = (changes: Partial<EnrollFacts>) => expectRefused(decideEnroll(facts(changes)), 'TOKEN_USED')
  const key = { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: 'thief' } as const
  refused({ credential: taken(), node: node('enrolled'), key })
  refused({ credential: taken({ expiresAtMs: noonMs }), node: node('enrolled') })
  // It was in: it has more than the token to come back with.
  refused({ credential: taken(), node: node('active') })
})

test('while issuance is halted no node gets in; where renewals go on, an answered request gets the same answer', () => {
  const key = { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: 'key-of-a1' } as const
  for (const renewals of [false, true]) {
    const domain = haltedDomainRow(renewals)
    expectRefused(decideEnroll(facts({ domain })), 'ISSUANCE_HALTED', /audit/)
    const again = decideEnroll(facts({ domain, node: nodeRow('active'), key }))
    assert.equal(again.kind, renewals ? 'repeat' : 'refused')
  }
})

test('a store in doubt admits no node, not even the key that was answered before, and spends no token', () => {
  const domain = doubtedDomainRow()
  expectRefused(decideEnroll(facts({ domain })), 'STORE_IN_DOUBT')
  const again = facts({
    domain,
    node: nodeRow('active'),
    key: { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: 'key-of-a1' },
  })
  expectRefused(decideEnroll(again), 'STORE_IN_DOUBT')
})
