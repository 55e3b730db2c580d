import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import type { Condition, RepairEvidence } from '#domain/core/node.ts'
import { decideQuarantine, decideRelease } from './quarantine.ts'
import {
  alice,
  domainRow,
  hour,
  keyRecovery,
  memberships,
  minute,
  nodeRow,
  noonMs,
  repair,
  slot,
  slots,
} from '../../../test/fakes/sample-rows.ts'

const facts = { reason: 'odd traffic', domain: domainRow(), by: alice, nowMs: noonMs }
const condition = (name: Condition['name']): Condition => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })

test('quarantine takes the certificates away and denies their epoch until the last has expired', () => {
  const pending = slot('a2', { notAfterMs: noonMs + 30 * hour })
  const retired = { slot: slot('a0', { notAfterMs: noonMs + 90 * hour }), untilMs: noonMs }
  const node = nodeRow('active', { membership: { ...memberships.active, slots: slots({ pending, retired }) } })
  const verdict = expectDecided(decideQuarantine({ ...facts, node }))
  assert.deepEqual(verdict.node.membership, {
    kind: 'quarantined',
    sinceMs: noonMs,
    reason: 'odd traffic',
    by: 'operator:alice',
    slots: null,
  })
  assert.deepEqual(writesOf(verdict, 'denial'), [
    {
      kind: 'epoch',
      node: 'gpu-001',
      epoch: 4,
      untilMs: noonMs + 90 * hour + 5 * minute,
      atMs: noonMs,
      why: 'quarantined: odd traffic',
      reason: 'unspecified',
    },
  ])
  assert.deepEqual(readsOf(verdict), ['node/gpu-001@7', 'domain/domain@3'])
  assert.deepEqual(entryTypesOf(verdict), ['node.quarantined'])
  assert.equal(verdict.change.entries[0].epoch, 4)
})

test('any node can be quarantined but a tombstone, and once', () => {
  for (const kind of ['registered', 'enrolled', 'active', 'inactive'] as const) {
    const verdict = expectDecided(decideQuarantine({ ...facts, node: nodeRow(kind) }))
    assert.equal(writesOf(verdict, 'denial').length, kind === 'registered' ? 0 : 1)
  }
  expectRefused(decideQuarantine({ ...facts, node: nodeRow('quarantined') }), 'NODE_QUARANTINED', /odd traffic/)
  expectRefused(decideQuarantine({ ...facts, node: nodeRow('revoked') }), 'NODE_REVOKED')
})

test('evidence survives quarantine; conditions of the lost certificates and approvals do not', () => {
  const conditions = [condition('cert_expiring'), condition('spoof_suspected'), condition('disk_full')]
  const node = nodeRow('active', { conditions, approvals: [{ by: 'operator:bob', atMs: noonMs }] })
  const quarantined = expectDecided(decideQuarantine({ ...facts, node })).node
  assert.deepEqual(quarantined.conditions, conditions.slice(1))
  assert.deepEqual(quarantined.approvals, [])
  const released = expectDecided(decideRelease({ ...facts, node: { value: quarantined, version: 8 } })).node
  assert.deepEqual(released.conditions, [condition('disk_full')])
})

test('a released node is inactive without certificates: it joins anew', () => {
  const verdict = expectDecided(decideRelease({ node: nodeRow('quarantined'), by: alice, nowMs: noonMs }))
  assert.deepEqual(verdict.node.membership, { kind: 'inactive', sinceMs: noonMs, slots: null })
  assert.equal(verdict.node.epoch, 4)
  assert.deepEqual(entryTypesOf(verdict), ['node.released'])
})

test('only what is in quarantine can be released', () => {
  for (const kind of ['registered', 'enrolled', 'active', 'inactive'] as const) {
    const verdict = decideRelease({ node: nodeRow(kind), by: alice, nowMs: noonMs })
    expectRefused(verdict, 'NODE_STATE_CONFLICT', new RegExp(`it is ${kind}`))
  }
  expectRefused(decideRelease({ node: nodeRow('revoked'), by: alice, nowMs: noonMs }), 'NODE_REVOKED')
})

test('a repaired node is released with its new certificate once its evidence has passed, and not before', () => {
  const repaired = (evidence: RepairEvidence | null) =>
    nodeRow('quarantined', {
      membership: { ...memberships.quarantined, slots: slots() },
      repair: repair({ usedBy: { spki: 'key-of-a1', epoch: 4, atMs: noonMs }, evidence }),
    })
  const release = (node: ReturnType<typeof repaired>) => decideRelease({ node, by: alice, nowMs: noonMs })
  const checks = [{ name: 'clock', ok: false, detail: 'wrong by 1 h' }]
  expectRefused(release(repaired(null)), 'NODE_STATE_CONFLICT', /has not shown its evidence/)
  const failed = repaired({ passed: false, atMs: noonMs, checks })
  expectRefused(release(failed), 'NODE_STATE_CONFLICT', /clock: wrong by 1 h/)
  const { node } = expectDecided(release(repaired({ passed: true, atMs: noonMs, checks: [] })))
  assert.deepEqual(node.membership, { kind: 'inactive', sinceMs: noonMs, slots: slots() })
  assert.notEqual(node.repair, null)
})

test('an unused repair bundle ends with the quarantine', () => {
  const node = nodeRow('quarantined', { repair: repair() })
  assert.equal(expectDecided(decideRelease({ node, by: alice, nowMs: noonMs })).node.repair, null)
})

test('what two holders recover with does not outlive the quarantine they are released from', () => {
  const after = (conditions: Condition[]) =>
    expectDecided(
      decideRelease({
        node: nodeRow('quarantined', { recovery: keyRecovery(), conditions }),
        by: alice,
        nowMs: noonMs,
      }),
    ).node.recovery
  assert.equal(after([condition('duplicate_identity')]), null)
  assert.notEqual(after([condition('spoof_suspected')]), null)
})
