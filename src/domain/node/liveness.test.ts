import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, readsOf } from '../../../test/fakes/expect-decision.ts'
import { decideExpired, decideExpiring, decideLapse, decideStuck } from './liveness.ts'
import { domainRow, hour, memberships, minute, nodeRow, noonMs, slot, slots } from '../../../test/fakes/sample-rows.ts'

const by = { actor: 'system:liveness', source: null, correlation: null }
const domain = domainRow()
const notYet = { kind: 'not-yet' }

test('an active node lapses when it has been away for the grace, and not a millisecond before', () => {
  const facts = { node: nodeRow('active'), lastPresentMs: noonMs, grace: domain, by }
  assert.deepEqual(decideLapse({ ...facts, nowMs: noonMs + 5 * minute - 1 }), notYet)
  const verdict = expectDecided(decideLapse({ ...facts, nowMs: noonMs + 5 * minute }))
  assert.deepEqual(verdict.node.membership, { kind: 'inactive', sinceMs: noonMs + 5 * minute, slots: slots() })
  assert.deepEqual(entryTypesOf(verdict), ['node.lapsed'])
  assert.deepEqual(verdict.change.entries[0].body, { last_present: '2030-01-01T12:00:00.000Z', grace_ms: 5 * minute })
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@7', 'domain/domain@3'])
})

test('an approval for an earlier return does not count after a lapse', () => {
  const node = nodeRow('active', { approvals: [{ by: 'operator:bob', atMs: noonMs }] })
  const verdict = decideLapse({ node, lastPresentMs: noonMs, grace: domain, by, nowMs: noonMs + hour })
  assert.deepEqual(expectDecided(verdict).node.approvals, [])
})

test('only an active node lapses', () => {
  for (const kind of ['registered', 'enrolled', 'inactive', 'quarantined', 'revoked'] as const) {
    const facts = { node: nodeRow(kind), lastPresentMs: 0, grace: domain, by, nowMs: noonMs }
    assert.deepEqual(decideLapse(facts), notYet)
  }
})

test('an enrollment without a first use is stuck after the time of the domain, and reported once', () => {
  const facts = { node: nodeRow('enrolled'), domain, by }
  const { sinceMs } = memberships.enrolled
  assert.deepEqual(decideStuck({ ...facts, nowMs: sinceMs + 10 * minute }), notYet)
  const verdict = expectDecided(decideStuck({ ...facts, nowMs: sinceMs + 10 * minute + 1 }))
  assert.equal(verdict.node.conditions[0]?.name, 'stuck_enrollment')
  assert.equal(verdict.node.membership.kind, 'enrolled')
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@7', 'domain/domain@3'])
  const node = { value: verdict.node, version: 8 }
  assert.deepEqual(decideStuck({ ...facts, node, nowMs: noonMs + hour }), notYet)
  assert.deepEqual(decideStuck({ ...facts, node: nodeRow('active'), nowMs: noonMs + hour }), notYet)
})

test('certificates count as expired when the last of them is, and said so once', () => {
  const endMs = noonMs + 48 * hour
  const membership = { ...memberships.active, slots: slots({ pending: slot('a2', { notAfterMs: endMs }) }) }
  const node = nodeRow('active', { membership })
  assert.deepEqual(decideExpired({ node, by, nowMs: endMs - 1 }), notYet)
  const verdict = expectDecided(decideExpired({ node, by, nowMs: endMs }))
  assert.equal(verdict.node.conditions[0]?.name, 'cert_expired')
  assert.deepEqual(verdict.node.conditions[0]?.evidence, { not_after: '2030-01-03T12:00:00.000Z' })
  assert.deepEqual(decideExpired({ node: { value: verdict.node, version: 8 }, by, nowMs: endMs }), notYet)
})

test('a replaced certificate counts for as long as it serves, however long it was issued for', () => {
  const retired = { slot: slot('a0', { notAfterMs: noonMs + 1000 * hour }), untilMs: noonMs + 24 * hour + minute }
  const node = nodeRow('active', { membership: { ...memberships.active, slots: slots({ retired }) } })
  assert.deepEqual(decideExpired({ node, by, nowMs: retired.untilMs - 1 }), notYet)
  expectDecided(decideExpired({ node, by, nowMs: retired.untilMs }))
})

test('a node without certificates has none that expired', () => {
  const released = nodeRow('inactive', { membership: { ...memberships.inactive, slots: null } })
  for (const node of [released, nodeRow('registered'), nodeRow('revoked')]) {
    assert.deepEqual(decideExpired({ node, by, nowMs: noonMs + 1000 * hour }), notYet)
  }
})

test('a certificate with less than a quarter of its life left and no successor is running out, and said so once', () => {
  const issuedAtMs = noonMs
  const current = slot('a1', { issuedAtMs, notAfterMs: noonMs + 24 * hour })
  const node = nodeRow('active', { membership: { ...memberships.active, slots: slots({ current }) } })
  assert.deepEqual(decideExpiring({ node, by, nowMs: noonMs + 18 * hour }), notYet)
  const verdict = expectDecided(decideExpiring({ node, by, nowMs: noonMs + 18 * hour + 1 }))
  assert.equal(verdict.node.conditions[0]?.name, 'cert_expiring')
  assert.deepEqual(decideExpiring({ node: { value: verdict.node, version: 8 }, by, nowMs: noonMs + 20 * hour }), notYet)
  // From here on it has expired, which is another condition.
  assert.deepEqual(decideExpiring({ node, by, nowMs: noonMs + 24 * hour }), notYet)
})

test('a successor that waits for its first use, or an absence, is not a certificate running out', () => {
  const lateMs = noonMs + 22 * hour
  const renewing = { ...memberships.active, slots: slots({ pending: slot('b2') }) }
  assert.deepEqual(decideExpiring({ node: nodeRow('active', { membership: renewing }), by, nowMs: lateMs }), notYet)
  for (const kind of ['registered', 'enrolled', 'inactive', 'quarantined', 'revoked'] as const) {
    assert.deepEqual(decideExpiring({ node: nodeRow(kind), by, nowMs: lateMs }), notYet)
  }
})

test('what was running out is over when it has run out', () => {
  const running = { name: 'cert_expiring', sinceMs: noonMs, reason: 'r', evidence: {} } as const
  const node = nodeRow('active', { conditions: [running] })
  const verdict = expectDecided(decideExpired({ node, by, nowMs: noonMs + 24 * hour }))
  assert.deepEqual(
    verdict.node.conditions.map(({ name }) => name),
    ['cert_expired'],
  )
})
