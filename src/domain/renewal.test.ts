import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  alice,
  domainRow,
  hour,
  memberships,
  minute,
  nodeRow,
  noonMs,
  profileRow,
  slot,
  slots,
} from '../../test/fakes/sample-rows.ts'
import type { Slots } from './node.ts'
import { decideRenew } from './renewal.ts'

/** What a caller with this certificate is told when it asks for this key. */
const asked = (has: Slots, serial: string, key: string): string => {
  const verdict = decideRenew({
    node: nodeRow('active', { membership: { ...memberships.active, slots: has } }),
    principal: {
      kind: 'node',
      id: 'gpu-001',
      epoch: 4,
      proof: { by: 'certificate', issuer: 'ca1', serial },
      notAfterMs: noonMs + hour,
      evidenceOnly: false,
      source: '192.0.2.8',
    },
    profile: profileRow('gpu-cloud'),
    domain: domainRow(),
    key: { kind: 'key', keyType: 'p256', spki: new Uint8Array(), spkiHash: key },
    keyBan: null,
    counter: null,
    claimant: null,
    claimantLive: false,
    otherHolder: null,
    lastSeen: null,
    orderId: 'o1',
    by: alice,
    nowMs: noonMs,
  })
  if (verdict.kind === 'repeat') return `repeat ${verdict.slot.serial}`
  return verdict.kind === 'refused' ? verdict.code : verdict.kind
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
