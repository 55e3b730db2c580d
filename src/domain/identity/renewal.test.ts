import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noKeyClaims } from './key-claim.ts'
import {
  alice,
  bearerRecovery,
  domainRow,
  doubtedDomainRow,
  haltedDomainRow,
  holder,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'
import type { Condition, Node, Slots } from '#domain/core/node.ts'
import { decideRenew, recordRenewal, type RenewFacts } from './renewal.ts'

/** By an older agent, unless the changes say otherwise. */
const factsOf = (
  has: Slots,
  serial: string,
  key: string,
  changes: Partial<RenewFacts> = {},
  node: Partial<Node> = {},
): RenewFacts => ({
  node: nodeRow('active', { membership: { ...memberships.active, slots: has }, counter: 5, ...node }),
  principal: {
    kind: 'node',
    id: 'gpu-001',
    epoch: 4,
    credential: { by: 'certificate', issuer: 'ca1', serial, spki: `key-of-${serial}` },
    notAfterMs: noonMs + hour,
    evidenceOnly: false,
    source: '192.0.2.8',
  },
  profile: profileRow('gpu-cloud'),
  domain: domainRow(),
  key: { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: key },
  keyBan: null,
  currentKeyBan: null,
  keyClaims: noKeyClaims,
  counter: null,
  register: null,
  claimant: holder(0, { instance: null }),
  claimantLive: false,
  otherHolder: null,
  lastSeen: null,
  withdrawn: [],
  orderId: 'o1',
  by: alice,
  nowMs: noonMs,
  ...changes,
})

/** What a caller with this certificate is told when it asks for this key. */
const asked = (...given: Parameters<typeof factsOf>): string => {
  const verdict = decideRenew(factsOf(...given))
  if (verdict.kind === 'repeat') return `repeat ${verdict.slot.serial}`
  if (verdict.kind === 'duplicate') return verdict.verdict.kind
  return verdict.kind === 'refused' ? verdict.code : verdict.kind
}

const admitted = (...given: Parameters<typeof factsOf>) => {
  const verdict = decideRenew(factsOf(...given))
  return verdict.kind === 'admitted' ? verdict : assert.fail(JSON.stringify(verdict))
}

const counter = (value: number) => ({ domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: value })
const issued = {
  issuer: 'ca1',
  serial: 'c3',
  spki: 'key-of-c3',
  sha256: 'hash-of-c3',
  issuedAtMs: noonMs,
  notAfterMs: noonMs + 24 * hour,
  der: '',
  order: 'o1',
}

const before = slots()
const answered = slots({ pending: slot('b2') })
const used = slots({ current: slot('b2'), retired: { slot: slot('a1'), untilMs: noonMs + minute } })

test('a request repeated gets the same certificate, before and after that has been used', () => {
  assert.deepEqual(
    [before, answered, used].map((has) => asked(has, 'a1', 'key-of-b2')),
    ['admitted', 'repeat b2', 'repeat b2'],
  )
})

test('one certificate has one successor: another key is refused', () => {
  assert.equal(asked(answered, 'a1', 'another key'), 'LINEAGE_CONFLICT')
  assert.equal(asked(used, 'a1', 'another key'), 'SERIAL_MISMATCH')
})

test('a renewal brings a new key', () => {
  assert.equal(asked(before, 'a1', 'key-of-a1'), 'CSR_INVALID')
})

test('every renewal counts, and a repeated one does not: nothing is written for it', () => {
  const { node } = recordRenewal(admitted(before, 'a1', 'key-of-c3'), issued, () => null)
  assert.equal(node.counter, 6)
  assert.equal(asked(answered, 'a1', 'key-of-b2', { counter: counter(4), claimant: holder(1) }), 'repeat b2')
})

test('an older counter is a copy; a newer one or none is not held against the caller', () => {
  const by = (value: number | null) => ({ counter: value === null ? null : counter(value), claimant: holder(1) })
  assert.equal(asked(before, 'a1', 'new', by(4)), 'fenced')
  assert.equal(asked(before, 'a1', 'new', { ...by(4), otherHolder: holder(2) }), 'claimant-refused')
  assert.deepEqual(
    [5, 6, null].map((value) => asked(before, 'a1', 'new', by(value))),
    ['admitted', 'admitted', 'admitted'],
  )
  assert.equal(asked(before, 'a1', 'new', { counter: counter(4) }), 'LINEAGE_CONFLICT')
})

test('a caller that names its process and is late is a second holder, live or not', () => {
  // L7: the successor is in use, so the plane knows which of the two is the older one.
  assert.equal(asked(used, 'a1', 'another key', { claimant: holder(1) }), 'claimant-refused')
  assert.equal(asked(used, 'a1', 'another key', { claimant: holder(1), otherHolder: holder(2) }), 'claimant-refused')
  assert.equal(asked(answered, 'a1', 'another key', { claimant: holder(1) }), 'fenced')
  assert.equal(asked(before, 'a1', 'another key', { claimant: holder(1), otherHolder: holder(2) }), 'claimant-refused')
})

test('a caller without a process id gets no successor while a named process is connected, and is never fenced for it', () => {
  assert.equal(asked(before, 'a1', 'new', { otherHolder: holder(2) }), 'claimant-refused')
  const profile = profileRow('high-assurance')
  assert.equal(asked(before, 'a1', 'new', { otherHolder: holder(2), profile }), 'claimant-refused')
  assert.equal(asked(before, 'a1', 'new'), 'admitted')
})

test('a certificate that has been replaced is not renewed, whichever holder has a channel', () => {
  assert.equal(asked(used, 'a1', 'another key', { claimant: holder(1), claimantLive: true }), 'SERIAL_MISMATCH')
})

test('the holder with the live channel gets its own successor; the successor of the other is denied, and the journal says so', () => {
  const live = { claimant: holder(1), claimantLive: true, counter: counter(4) }
  const { change, node } = recordRenewal(admitted(answered, 'a1', 'key-of-c3', live), issued, () => null)
  assert.ok(node.membership.kind === 'active')
  assert.equal(node.membership.slots.pending?.serial, 'c3')
  assert.deepEqual(
    node.conditions.map(({ name }) => name),
    ['duplicate_identity'],
  )
  const denial = change.writes.find(({ put }) => put === 'denial')
  assert.deepEqual(denial?.value, {
    kind: 'certificate',
    issuer: 'ca1',
    serial: 'b2',
    untilMs: noonMs + 23 * hour + 5 * minute,
    atMs: noonMs,
    why: 'replaced before its first use',
    reason: 'superseded',
  })
  assert.deepEqual(
    change.entries.map(({ type }) => type),
    ['node.second_holder', 'node.renewed'],
  )
})

test('a token is rotated with every renewal; one that never arrived is forgotten, the one before it is not', () => {
  const after = (hash: string, former: string | null) =>
    recordRenewal(
      admitted(before, 'a1', 'key-of-c3', {}, { recovery: bearerRecovery(hash, former) }),
      issued,
      () => 'h3',
    ).node.recovery
  assert.deepEqual(after('h2', null), bearerRecovery('h3', 'h2'))
  assert.deepEqual(after('h2', 'h1'), bearerRecovery('h3', 'h1'))
})

test('a recovery key is never certified', () => {
  assert.equal(asked(before, 'a1', 'recovery-key', {}, { recovery: keyRecovery() }), 'CSR_INVALID')
})

test('a node with nothing registered registers what it recovers with by a renewal, and only then', () => {
  const register = { kind: 'key', spki: 'recovery-key', publicKey: 'p' } as const
  const registeredBy = (changes: Partial<RenewFacts>, node: Partial<Node>) => {
    const { node: after, change } = recordRenewal(
      admitted(before, 'a1', 'key-of-c3', changes, node),
      issued,
      () => 'h3',
    )
    return { recovery: after.recovery, told: change.entries.at(-1)?.body['registered'] }
  }
  const anew = { credential: { ...register, registeredAtMs: noonMs }, recoveredAtMs: [], denied: null, episode: null }
  assert.deepEqual(registeredBy({ register }, {}), { recovery: anew, told: 'key' })
  const bearer = registeredBy({ register: { kind: 'bearer' } }, {})
  const token = { kind: 'bearer', hash: 'h3', former: null, registeredAtMs: noonMs } as const
  assert.deepEqual(bearer, { recovery: { ...anew, credential: token }, told: 'bearer' })

  const known = registeredBy({ register }, { recovery: keyRecovery() })
  assert.deepEqual(known, { recovery: keyRecovery(), told: null })
  const nothing = { recovery: null, told: null }
  assert.deepEqual(registeredBy({ register, profile: profileRow('hpc-diskless') }, {}), nothing)
  const two: Condition = { name: 'duplicate_identity', sinceMs: noonMs, reason: 'r', evidence: {} }
  assert.deepEqual(registeredBy({ register }, { conditions: [two] }), nothing)
  const certified = { register: { ...register, spki: 'key-of-c3' } }
  assert.equal(asked(before, 'a1', 'key-of-c3', certified), 'CSR_INVALID')
})

test('a store in doubt renews nothing, and judges no copies: its counters may be old', () => {
  const old = { counter: { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter: 1 }, claimant: holder(1) }
  for (const changes of [{}, old]) {
    assert.equal(asked(slots(), 'a1', 'new-key', { ...changes, domain: doubtedDomainRow() }), 'STORE_IN_DOUBT')
  }
})

test('while issuance is halted no node renews, unless renewals go on', () => {
  const renewing = (renewals: boolean) => asked(slots(), 'a1', 'new-key', { domain: haltedDomainRow(renewals) })
  assert.equal(renewing(false), 'ISSUANCE_HALTED')
  assert.equal(renewing(true), asked(slots(), 'a1', 'new-key'))
})

test('R-010: a renewal makes the hardware of a node known that enrolled before it was kept', () => {
  const record = (node: Partial<Node>) =>
    recordRenewal(admitted(before, 'a1', 'key-of-c3', { claimant: holder(1) }, node), issued, () => null).node
      .reportedHardware
  const known = { macs: holder(1).macs, bmcSerial: 'BMC-1', epoch: 4 }
  assert.deepEqual(record({}), known)
  const elsewhere = { macs: ['02:00:00:00:00:09'], bmcSerial: 'BMC-9', epoch: 4 }
  assert.deepEqual(record({ reportedHardware: elsewhere }), elsewhere)
})
