import assert from 'node:assert/strict'
import { test } from 'node:test'
import { certificateStatus, denialKeysFor } from './certificate-status.ts'
import type { CertificateRecord, Denial } from './certificate.ts'

const nowMs = 1_900_000_000_000
const hour = 3_600_000

const record: CertificateRecord = {
  issuer: 'ca1',
  serial: 'a1',
  subject: { kind: 'node', node: 'gpu-001', epoch: 4 },
  spki: 'key',
  sha256: 'hash',
  issuedAtMs: nowMs - 2 * hour,
  notAfterMs: nowMs + hour,
  der: '',
  order: 'o1',
  renews: null,
}
const story = { untilMs: nowMs + 2 * hour, why: 'x' }
const epoch: Denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, atMs: nowMs - hour, reason: 'unspecified', ...story }

test('a certificate on record that nothing denies is good until it expires, and then nothing is said of it', () => {
  assert.deepEqual(certificateStatus({ record, denials: [], nowMs }), { kind: 'good' })
  assert.deepEqual(certificateStatus({ record, denials: [], nowMs: record.notAfterMs }), { kind: 'unknown' })
})

test('what is not on record is unknown', () => {
  assert.deepEqual(certificateStatus({ record: null, denials: [], nowMs }), { kind: 'unknown' })
})

test('of several denials the earliest says since when and why; an expired certificate stays revoked while it is denied', () => {
  const issuer: Denial = { kind: 'issuer', issuer: 'ca1', atMs: nowMs, reason: 'ca-compromise', ...story }
  const expected = { kind: 'revoked', atMs: nowMs - hour, reason: 'unspecified' }
  assert.deepEqual(certificateStatus({ record, denials: [issuer, epoch], nowMs }), expected)
  assert.deepEqual(certificateStatus({ record, denials: [epoch], nowMs: record.notAfterMs + 1 }), expected)
})

test('a withdrawn issuer revokes what is not on record too', () => {
  const issuer: Denial = { kind: 'issuer', issuer: 'ca1', atMs: nowMs, reason: 'ca-compromise', ...story }
  const status = certificateStatus({ record: null, denials: [issuer], nowMs })
  assert.deepEqual(status, { kind: 'revoked', atMs: nowMs, reason: 'ca-compromise' })
})

test('a denial from before its time was written down is as old as the certificate', () => {
  const status = certificateStatus({ record, denials: [{ ...epoch, atMs: 0 }], nowMs })
  assert.deepEqual(status, { kind: 'revoked', atMs: record.issuedAtMs, reason: 'unspecified' })
})

test('a certificate is denied by itself, by its issuer, and that of a node by its epoch', () => {
  assert.deepEqual(denialKeysFor('ca1', 'a1', record), ['certificate/ca1/a1', 'issuer/ca1', 'epoch/4/gpu-001'])
  assert.deepEqual(denialKeysFor('ca1', 'a1', { subject: { kind: 'server' } }), ['certificate/ca1/a1', 'issuer/ca1'])
})
