import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberships, nodeRow } from '../../../test/fakes/sample-rows.ts'
import { certificateStatus as statusOf, denialKeysFor, mayHaveRevoked, type StatusFacts } from './certificate-status.ts'
import type { CertificateRow, Denial } from '#domain/core/certificate.ts'

const nowMs = 1_900_000_000_000
const hour = 3_600_000

const row: CertificateRow = {
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
const node = nodeRow('active', { epoch: 4 }).value
const certificateStatus = (facts: Pick<StatusFacts, 'row' | 'denials' | 'nowMs'> & Partial<StatusFacts>) =>
  statusOf({ node, ban: null, issuer: { compromisedAtMs: null }, ...facts })
const story = { untilMs: nowMs + 2 * hour, why: 'x' }
const epoch: Denial = { kind: 'epoch', node: 'gpu-001', epoch: 4, atMs: nowMs - hour, reason: 'unspecified', ...story }

test('a certificate in the store that nothing denies is good until it expires, and then nothing is said of it', () => {
  assert.deepEqual(certificateStatus({ row, denials: [], nowMs }), { kind: 'good' })
  assert.deepEqual(certificateStatus({ row, denials: [], nowMs: row.notAfterMs }), { kind: 'unknown' })
})

test('what is not in the store is unknown', () => {
  assert.deepEqual(certificateStatus({ row: null, denials: [], nowMs }), { kind: 'unknown' })
})

test('of several denials the earliest says since when and why; an expired certificate stays revoked while it is denied', () => {
  const issuer: Denial = { kind: 'issuer', issuer: 'ca1', atMs: nowMs, reason: 'ca-compromise', ...story }
  const expected = { kind: 'revoked', atMs: nowMs - hour, reason: 'unspecified' }
  assert.deepEqual(certificateStatus({ row, denials: [issuer, epoch], nowMs }), expected)
  assert.deepEqual(certificateStatus({ row, denials: [epoch], nowMs: row.notAfterMs + 1 }), expected)
})

test('of two denials of the same moment the one with a reason counts, in either order', () => {
  const own: Denial = {
    kind: 'certificate',
    issuer: 'ca1',
    serial: 'a1',
    ...story,
    atMs: epoch.atMs,
    reason: 'superseded',
  }
  const expected = { kind: 'revoked', atMs: nowMs - hour, reason: 'superseded' }
  assert.deepEqual(certificateStatus({ row, denials: [own, epoch], nowMs }), expected)
  assert.deepEqual(certificateStatus({ row, denials: [epoch, own], nowMs }), expected)
})

test('a withdrawn issuer revokes what is not in the store too', () => {
  const issuer: Denial = { kind: 'issuer', issuer: 'ca1', atMs: nowMs, reason: 'ca-compromise', ...story }
  const status = certificateStatus({ row: null, denials: [issuer], nowMs })
  assert.deepEqual(status, { kind: 'revoked', atMs: nowMs, reason: 'ca-compromise' })
})

test('a denial from before its time was written down is as old as the certificate', () => {
  const status = certificateStatus({ row, denials: [{ ...epoch, atMs: 0 }], nowMs })
  assert.deepEqual(status, { kind: 'revoked', atMs: row.issuedAtMs, reason: 'unspecified' })
})

test('a certificate is denied by its own denial, by its issuer, and that of a node by its epoch', () => {
  assert.deepEqual(denialKeysFor('ca1', 'a1', row), ['certificate/ca1/a1', 'issuer/ca1', 'epoch/4/gpu-001'])
  assert.deepEqual(denialKeysFor('ca1', 'a1', { subject: { kind: 'server' } }), ['certificate/ca1/a1', 'issuer/ca1'])
})

test('L2: without a denial the row of the node says what the node listener says: revoked, quarantined, a former epoch', () => {
  const status = (membership: (typeof memberships)[keyof typeof memberships], epoch = 4) => {
    const now = { ...node, membership, epoch }
    const said = certificateStatus({ row, denials: [], node: now, nowMs })
    assert.ok(said.kind === 'good' || mayHaveRevoked(now))
    return said.kind === 'revoked' ? [said.kind, said.reason] : [said.kind]
  }
  assert.deepEqual(status(memberships.active), ['good'])
  assert.deepEqual(status(memberships.inactive), ['good'])
  assert.deepEqual(status(memberships.revoked), ['revoked', 'unspecified'])
  assert.deepEqual(status(memberships.quarantined), ['revoked', 'unspecified'])
  assert.deepEqual(status({ ...memberships.quarantined, slots: memberships.active.slots } as never), ['good'])
  assert.deepEqual(status(memberships.registered), ['revoked', 'unspecified'])
  assert.deepEqual(status(memberships.active, 5), ['revoked', 'superseded'])
})

test('L2: without a denial a banned key and a withdrawn authority revoke; a node that is not there makes it unknown', () => {
  const ban = { spki: 'key', why: 'x', atMs: nowMs - hour }
  assert.equal(certificateStatus({ row, denials: [], ban, nowMs }).kind, 'revoked')
  const withdrawn = { row, denials: [], issuer: { compromisedAtMs: nowMs - hour }, nowMs }
  assert.deepEqual(certificateStatus(withdrawn), { kind: 'revoked', atMs: nowMs - hour, reason: 'ca-compromise' })
  assert.equal(certificateStatus({ ...withdrawn, row: null, node: null }).kind, 'revoked')
  assert.deepEqual(certificateStatus({ row, denials: [], node: null, nowMs }), { kind: 'unknown' })
})

test('L2: what was revoked by a clock that was ahead is revoked now', () => {
  const status = certificateStatus({ row, denials: [{ ...epoch, atMs: nowMs + 72 * hour }], nowMs })
  assert.deepEqual(status, { kind: 'revoked', atMs: nowMs, reason: 'unspecified' })
})
