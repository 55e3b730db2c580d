import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noKeyClaims } from '#domain/identity/key-claim.ts'
import {
  alice,
  bearerRecovery,
  domainRow,
  holder,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  repair,
} from '../../../test/fakes/sample-rows.ts'
import type { ConditionName, Membership, Node, FailureClass } from '#domain/core/node.ts'
import { decideRecover, recordRecovery, type RecoverFacts } from './recovery.ts'

const story = { actor: 'node:gpu-001', source: '192.0.2.1', correlation: 'story-9' }
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

const recover = (
  kind: Membership['kind'],
  changes: Partial<Node>,
  asked: Partial<RecoverFacts> = {},
  nextBearerHash: string | null = null,
) => {
  const verdict = decideRecover({
    node: nodeRow(kind, { recovery: keyRecovery(), counter: 5, ...changes }),
    profile: profileRow('gpu-cloud'),
    domain: domainRow(),
    credential: { by: 'key', spki: 'recovery-key' },
    counter: { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: 5 },
    key: { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: 'new-key' },
    keyBan: null,
    keyClaims: noKeyClaims,
    credentialBan: null,
    claimant: holder(1),
    otherHolder: null,
    lastSeen: null,
    failure: { class: 'cert_expired', code: 'EXPIRED', sinceMs: noonMs - hour, certNotAfterMs: noonMs - minute },
    register: null,
    withdrawn: [],
    orderId: 'o1',
    by: story,
    nowMs: noonMs,
    ...asked,
  })
  assert.ok(verdict.kind === 'admitted', JSON.stringify(verdict))
  return recordRecovery(verdict, issued, () => nextBearerHash)
}

const conditions = (...names: ConditionName[]) =>
  names.map((name) => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} }))

test('a recovery is one change: a new epoch, the old one denied, the certificate, the count, the rows it relied on', () => {
  const { node, change } = recover('active', {})
  assert.deepEqual([node.epoch, node.counter, node.membership.kind], [5, 6, 'enrolled'])
  assert.deepEqual(
    change.writes.map(({ put }) => put),
    ['node', 'certificate', 'denial', 'key-claim'],
  )
  const denial = change.writes.find((write) => write.put === 'denial')
  assert.deepEqual(denial?.value, {
    kind: 'epoch',
    node: 'gpu-001',
    epoch: 4,
    untilMs: noonMs + 23 * hour + 5 * minute,
    atMs: noonMs,
    why: 'superseded by a recovery',
    reason: 'superseded',
  })
  assert.deepEqual(
    change.reads.map(({ row, version }) => [row, version]),
    [
      ['node', 7],
      ['profile', 5],
      ['domain', 3],
      ['key-ban', 0],
      ['key-ban', 0],
      ['key-claim', 0],
    ],
  )
})

test('the journal records the episode under one correlation, as a security event, with the claimant', () => {
  const { change, node } = recover('active', { approvals: [{ by: alice.actor, atMs: noonMs }] })
  assert.deepEqual(
    change.entries.map(({ type, correlation }) => [type, correlation]),
    [
      ['node.recovery_requested', 'story-9'],
      ['node.superseded', 'story-9'],
      ['node.recovered', 'story-9'],
    ],
  )
  const { body } = change.entries.at(-1) ?? assert.fail()
  assert.equal(body['security_event'], true)
  assert.equal(body['failure_class'], 'cert_expired')
  assert.equal(body['cert_not_after'], '2030-01-01T11:59:00.000Z')
  assert.equal(body['mode'], 'auto')
  assert.deepEqual(body['approved_by'], ['operator:alice'])
  assert.match(String(body['claimant']), /192\.0\.2\.1.*BMC-1.*instance/)
  assert.equal(node.recovery?.episode, 'story-9')
})

test('what was about the old identity is over; suspicions and what the agent reports stay', () => {
  const before = conditions('cert_expired', 'needs_approval', 'not_recoverable', 'duplicate_identity', 'not_persisted')
  const { node } = recover('inactive', {
    conditions: before,
    approvals: [{ by: 'operator:bob', atMs: noonMs }],
    rehearsal: { outcome: 'passed', sinceMs: noonMs, epoch: 4 },
  })
  assert.deepEqual(node.conditions, before.slice(3))
  assert.deepEqual([node.approvals, node.rehearsal], [[], null])
})

test('the history has only what the budget looks at', () => {
  const recoveredAtMs = [noonMs - 25 * hour, noonMs - 3 * hour, noonMs - 2 * hour]
  const { node } = recover('inactive', { recovery: keyRecovery({ recoveredAtMs }) })
  assert.deepEqual(node.recovery?.recoveredAtMs, [noonMs - 3 * hour, noonMs - 2 * hour, noonMs])
  const approved = recover('inactive', {
    recovery: keyRecovery({ recoveredAtMs: [noonMs - 3 * hour, noonMs - 2 * hour, noonMs - hour] }),
    approvals: [{ by: 'operator:bob', atMs: noonMs }],
  })
  assert.equal(approved.node.recovery?.recoveredAtMs.length, 3)
})

test('a token is rotated, and the one presented stays good until the new one is known to have arrived', () => {
  const after = (presented: string) =>
    recover(
      'inactive',
      { recovery: bearerRecovery('h2', 'h1') },
      { credential: { by: 'bearer', hash: presented } },
      'h3',
    ).node.recovery?.credential
  assert.deepEqual(after('h2'), { ...bearerRecovery('h3', 'h2').credential })
  assert.deepEqual(after('h1'), { ...bearerRecovery('h3', 'h1').credential })
})

test('a repaired node stays in quarantine with a certificate, and registers what it recovers by from now on', () => {
  const register = { kind: 'key', spki: 'another-recovery-key', publicKey: 'cHVi' } as const
  const { node, change } = recover(
    'quarantined',
    { recovery: null, repair: repair(), conditions: conditions('duplicate_identity') },
    { credential: { by: 'repair', hash: 'hash-of-bundle' }, counter: null, register },
  )
  assert.ok(node.membership.kind === 'quarantined')
  assert.deepEqual({ ...node.membership, slots: null }, memberships.quarantined)
  assert.equal(node.membership.slots?.current.serial, 'b1')
  assert.deepEqual(node.repair?.usedBy, { spki: 'new-key', epoch: 5, atMs: noonMs })
  assert.deepEqual(node.recovery?.credential, { ...register, registeredAtMs: noonMs })
  assert.deepEqual(
    change.entries.map(({ type }) => type),
    ['node.recovery_requested', 'node.repaired'],
  )
  assert.deepEqual(node.conditions, conditions('duplicate_identity'))
})

test('what a node recovers by is not changed by a recovery: a lost answer could not be asked for again', () => {
  const register = { kind: 'key', spki: 'another-recovery-key', publicKey: 'cHVi' } as const
  const { node } = recover('inactive', {}, { register })
  assert.deepEqual(node.recovery?.credential, keyRecovery().credential)
})

test('a repair is journaled with the failure before it, why the bundle was made, and why the node was fenced', () => {
  const withBundle = (code: string, failureClass: FailureClass) => {
    const failure = { class: failureClass, code, sinceMs: noonMs - hour, certNotAfterMs: null }
    const credential = { by: 'repair', hash: 'hash-of-bundle' } as const
    const { change } = recover('quarantined', { repair: repair() }, { credential, counter: null, failure })
    return [change.entries[0], change.entries.at(-1)].map((one) => one?.body)
  }
  for (const body of withBundle('SELF_SIGNED_CERT', 'server_tls_untrusted')) {
    assert.equal(body?.['failure_class'], 'server_tls_untrusted')
    assert.equal(body?.['repair_reason'], repair().reason)
    assert.equal(body?.['quarantined_for'], 'odd traffic')
  }
  // Of an agent of 0.3, which had nothing to report but that a bundle was there.
  for (const body of withBundle('repair_requested', 'endpoint_unreachable'))
    assert.equal(body?.['failure_class'], 'identity_revoked_or_fenced')
})

test('a repair without a registration keeps what was registered, unless two hold it', () => {
  const repairOf = (...names: ConditionName[]) =>
    recover(
      'quarantined',
      { repair: repair(), conditions: conditions(...names) },
      { credential: { by: 'repair', hash: 'hash-of-bundle' }, counter: null },
    ).node.recovery
  assert.deepEqual(repairOf()?.credential, keyRecovery().credential)
  assert.equal(repairOf('duplicate_identity'), null)
})

test('R-010: a recovery keeps the hardware it came from; a repair keeps what was known before, to be shown again', () => {
  const known = { macs: ['02:00:00:00:00:01', '02:00:00:00:00:07'], bmcSerial: 'BMC-1', epoch: 4 }
  const shown = { macs: holder(1).macs, bmcSerial: 'BMC-1' }
  assert.deepEqual(recover('inactive', {}).node.reportedHardware, { ...shown, epoch: 5 })
  assert.deepEqual(recover('inactive', { reportedHardware: known }).node.reportedHardware, { ...shown, epoch: 5 })
  const moved = { reportedHardware: { ...known, macs: ['02:00:00:00:00:09'], bmcSerial: 'BMC-9' } }
  const approvals = [{ by: 'operator:bob', atMs: noonMs }]
  assert.deepEqual(recover('inactive', { ...moved, approvals }).node.reportedHardware, { ...shown, epoch: 5 })
  const bundle = { credential: { by: 'repair', hash: 'hash-of-bundle' }, counter: null } as const
  const repaired = recover('quarantined', { repair: repair(), ...moved }, bundle)
  assert.deepEqual(repaired.node.reportedHardware, { ...moved.reportedHardware, epoch: 5 })
  // Of two holders the operator has chosen this one.
  const two = { repair: repair(), ...moved, conditions: conditions('duplicate_identity') }
  assert.deepEqual(recover('quarantined', two, bundle).node.reportedHardware, { ...shown, epoch: 5 })
})
