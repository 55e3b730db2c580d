import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import {
  failedIdentity,
  failureWindowMs,
  repeatedFailures,
  unknownHardware,
  unknownHardwareAlert,
  withFailure,
} from './alert-failures.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { RefusalCode } from '#domain/core/refusal-table.ts'

const principal: NodePrincipal = {
  kind: 'node',
  id: 'gpu-001',
  epoch: 1,
  credential: { by: 'certificate', issuer: 'ca1', serial: 'a1', spki: 'key-of-a1' },
  notAfterMs: noonMs,
  evidenceOnly: false,
  source: '192.0.2.7',
}
const about = (refusal: Refusal, actor?: string): Refusal => ({
  ...refusal,
  about: { node: 'gpu-001', ...(actor === undefined ? {} : { actor }) },
})

test('only a caller that proved something of a node counts against it', () => {
  const cases: [Refusal, NodePrincipal | null, string | null][] = [
    [refuse('CSR_INVALID'), principal, 'key'],
    [about(refuse('CLIENT_CERT_EXPIRED'), 'node:gpu-001'), null, 'key'],
    [about(refuse('TOKEN_EXPIRED'), 'token:t1'), null, 'token'],
    [about(refuse('NODE_STATE_CONFLICT'), 'hardware'), null, 'hardware'],
    // A name in a request, and a key that belongs to somebody else.
    [about(refuse('RECOVERY_UNKNOWN')), null, null],
    [about(refuse('RECOVERY_UNKNOWN'), 'anonymous'), null, null],
    [about(refuse('CLIENT_CERT_EXPIRED'), 'node:gpu-002'), null, null],
    [refuse('TOKEN_INVALID'), null, null],
  ]
  for (const [refusal, caller, provenBy] of cases) {
    assert.deepEqual(
      failedIdentity(refusal, caller),
      provenBy === null ? null : { node: 'gpu-001', provenBy },
      JSON.stringify(refusal),
    )
  }
})

test("the plane's own trouble, what an operator decided and what has an alert of its own is no failure of a node", () => {
  for (const code of [
    'BUSY',
    'RATE_LIMITED',
    'DISK_TROUBLE',
    'REPLICA_BEHIND',
    'STORE_IN_DOUBT',
    'NODE_REVOKED',
    'NODE_QUARANTINED',
    'APPROVAL_REQUIRED',
  ] as const)
    assert.equal(failedIdentity(refuse(code), principal), null, code)
})

test('a refusal that a replica of a later release journaled counts, whatever its code', () => {
  const later = refuse('A_NEWER_CODE' as RefusalCode)
  assert.notEqual(failedIdentity(later, principal), null)
})

test('failures count for ten minutes, and no more of them are kept than it takes', () => {
  assert.deepEqual(withFailure([1, 2, 3, 4, 5], 6), [2, 3, 4, 5, 6])
  assert.deepEqual(withFailure([1, 2, 3], failureWindowMs + 2), [3, failureWindowMs + 2])
})

test('addresses are proof only where a profile admits by them; failures of a revoked node are ignored', () => {
  const failure = {
    identity: { node: 'gpu-001', provenBy: 'hardware' },
    code: 'CSR_INVALID',
    source: '192.0.2.7',
  } as const
  const node = nodeRow('active').value
  assert.equal(repeatedFailures(node, profileRow('gpu-cloud').value, failure), null)
  const alert = repeatedFailures(node, profileRow('hpc-diskless').value, failure)
  assert.equal(alert?.reason, 'refused 5 times within 10 minutes, the last time with CSR_INVALID from 192.0.2.7')
  const byKey = { ...failure, identity: { node: 'gpu-001', provenBy: 'key' } } as const
  assert.notEqual(repeatedFailures(node, profileRow('gpu-cloud').value, byKey), null)
  assert.equal(repeatedFailures(nodeRow('revoked').value, profileRow('gpu-cloud').value, byKey), null)
})

test("R-092: hardware that is no node's is counted as a machine; that of a node, or none at all, is not", () => {
  const hardware = { macs: ['02:00:00:00:00:0a'], bmcSerial: null }
  const shown = (code: RefusalCode, about: Refusal['about']) => unknownHardware({ ...refuse(code), about: about ?? {} })
  assert.deepEqual(shown('NODE_NOT_ENROLLED', { hardware }), hardware)
  assert.equal(shown('NODE_NOT_ENROLLED', {}), null)
  assert.equal(shown('NODE_NOT_ENROLLED', { hardware: { macs: [], bmcSerial: null } }), null)
  assert.equal(shown('RATE_LIMITED', { hardware }), null)
  assert.equal(shown('NODE_REVOKED', { hardware, node: 'hpc-001' }), null)
})

test('R-092: the alert counts the machines and names the last one, bounded', () => {
  const macs = Array.from({ length: 64 }, (_, at) => `02:00:00:00:00:${at.toString(16).padStart(2, '0')}`)
  const last = { macs, bmcSerial: `enroll_${'a'.repeat(43)}` }
  const wanted = unknownHardwareAlert('lab.example', { machines: 1000, atLeast: true, last, source: '192.0.2.9' }, null)
  assert.deepEqual([wanted.kind, wanted.subject, wanted.node], ['unknown_hardware', 'lab.example', null])
  assert.match(
    wanted.reason,
    /^1000 or more machines asked to join .* each 5 times within 10 minutes; the last from 192/,
  )
  assert.doesNotMatch(wanted.reason, /enroll_/)
  assert.ok(wanted.reason.length < 400)
})
