import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import type { Node, Slot, Slots } from '#domain/core/node.ts'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import { hour, memberships, minute, nodeRow, noonMs, slot, slots } from '../../../test/fakes/sample-rows.ts'
import { judgeCertificate, type PresentedCertificate } from './presented-certificate.ts'

const rowOf = (held: Slot, epoch = 4): CertificateRow => ({
  ...held,
  der: '',
  order: 'o1',
  renews: null,
  subject: { kind: 'node', node: 'gpu-001', epoch },
})

const activeWith = (changes: Partial<Slots>): Node =>
  nodeRow('active', { membership: { ...memberships.active, slots: slots(changes) } }).value

const judge = (changes: Partial<PresentedCertificate> = {}) =>
  judgeCertificate({
    row: rowOf(slot('a1')),
    node: nodeRow('active').value,
    denied: false,
    keyBanned: false,
    issuerWithdrawn: false,
    source: '192.0.2.8',
    toleranceMs: 5 * minute,
    nowMs: noonMs,
    ...changes,
  })

test('the current certificate of a node speaks for it, under its epoch', () => {
  assert.deepEqual(judge(), {
    kind: 'node',
    id: 'gpu-001',
    epoch: 4,
    credential: { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' },
    notAfterMs: noonMs + 23 * hour,
    evidenceOnly: false,
    source: '192.0.2.8',
  })
})

test('a certificate without a row, of the plane itself, or of a node that is not registered is unknown', () => {
  expectRefused(judge({ row: null }), 'CLIENT_CERT_UNKNOWN')
  expectRefused(judge({ node: null }), 'CLIENT_CERT_UNKNOWN')
  const ofPlane: CertificateRow = { ...rowOf(slot('a1')), subject: { kind: 'server' } }
  expectRefused(judge({ row: ofPlane }), 'CLIENT_CERT_UNKNOWN')
})

test('a certificate serves until the moment it expires', () => {
  const row = rowOf(slot('a1', { notAfterMs: noonMs + 1 }))
  assert.equal(judge({ row }).kind, 'node')
  expectRefused(judge({ row, nowMs: noonMs + 1 }), 'CLIENT_CERT_EXPIRED')
})

test('a certificate of an earlier epoch is denied, also where no denial of that epoch is in the store', () => {
  expectRefused(judge({ row: rowOf(slot('a1'), 3) }), 'CLIENT_CERT_DENIED')
})

test('a denial, a banned key and a withdrawn authority each end it', () => {
  expectRefused(judge({ denied: true }), 'CLIENT_CERT_DENIED')
  expectRefused(judge({ keyBanned: true }), 'CLIENT_CERT_DENIED', /banned with another node/)
  expectRefused(judge({ issuerWithdrawn: true }), 'ISSUER_WITHDRAWN')
})

test('a certificate that was replaced serves until its connections are drained, and betrays a second holder after that', () => {
  const node = activeWith({ current: slot('b1'), retired: { slot: slot('a1'), untilMs: noonMs + 1 } })
  const draining = judge({ node })
  assert.equal(draining.kind === 'node' && draining.draining, true)
  const drained = judge({ node, nowMs: noonMs + 1 })
  expectRefused(drained, 'SERIAL_MISMATCH')
  assert.deepEqual('secondHolderOf' in drained && drained.secondHolderOf, { node, serial: 'a1' })
  const replacedTwice = judge({ node: activeWith({ current: slot('c1') }) })
  expectRefused(replacedTwice, 'SERIAL_MISMATCH')
  assert.ok('secondHolderOf' in replacedTwice)
})

test('the certificate of before a revocation says so, and blames no other node for its banned key', () => {
  const detailOf = (changes: Partial<PresentedCertificate>) => {
    const verdict = judge({ denied: true, keyBanned: true, ...changes })
    return verdict.kind === 'refused' ? verdict.detail : null
  }
  assert.match(detailOf({ node: nodeRow('registered').value }) ?? '', /^its node was revoked/)
  assert.match(detailOf({ row: rowOf(slot('a1'), 3) }) ?? '', /^its node was revoked/)
  assert.match(detailOf({}) ?? '', /banned with another node/)
})

test('a revoked node and one in quarantine are refused; after a repair one in quarantine may show evidence', () => {
  expectRefused(judge({ node: nodeRow('revoked').value }), 'NODE_REVOKED')
  expectRefused(judge({ node: nodeRow('quarantined').value }), 'NODE_QUARANTINED')
  const repaired = nodeRow('quarantined', { membership: { ...memberships.quarantined, slots: slots() } }).value
  const judged = judge({ node: repaired })
  assert.equal(judged.kind === 'node' && judged.evidenceOnly, true)
})
