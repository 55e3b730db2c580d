import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import { alice, bob, keyRecovery, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { alertsOfNode } from '#domain/alerts/alert-wanted.ts'
import type { Condition } from '#domain/core/node.ts'
import { decideSettle } from './settle.ts'

const condition = (name: Condition['name']): Condition => ({
  ...{ name, sinceMs: noonMs - 5, reason: 'r' },
  evidence: { claimant: 'a' },
})
const duplicate = condition('duplicate_identity')
const rehearsal = { outcome: 'passed', sinceMs: noonMs, epoch: 4 } as const
const node = nodeRow('active', {
  conditions: [duplicate, condition('spoof_suspected'), condition('disk_full')],
  recovery: keyRecovery(),
  reportedHardware: { macs: ['02:00:00:00:00:09'], bmcSerial: null, epoch: 4 },
  rehearsal,
})
const wiped = { connected: true, reason: 'the copy was wiped', by: alice, nowMs: noonMs }
const facts = { node, profile: profileRow('gpu-cloud'), ...wiped }

test('the connected machine stays, the suspicion ends, and the shared recovery credential is removed', () => {
  const settled = expectDecided(decideSettle(facts))
  assert.deepEqual(settled.node.conditions, [condition('disk_full')])
  assert.deepEqual(alertsOfNode(settled.node), [])
  assert.deepEqual([settled.node.recovery, settled.node.rehearsal], [null, null])
  // It may be another machine than the one that enrolled.
  assert.equal(settled.node.reportedHardware, undefined)
  assert.deepEqual(settled.node.membership, node.value.membership)
  assert.deepEqual(settled.node.approvals, [])
  assert.deepEqual(entryTypesOf(settled), ['node.settled', 'node.condition_cleared', 'node.condition_cleared'])
  assert.deepEqual(readsOf(settled), ['node/gpu-001@7', 'profile/gpu-cloud@5'])
  const body = { reason: 'the copy was wiped', said: 1, needed: 1, complete: true, recovery_dropped: true }
  assert.deepEqual(settled.change.entries[0].body, body)
})

test('an anonymous caller that was only refused holds nothing: the node keeps its recovery credential', () => {
  const knocked = nodeRow('active', {
    ...{ conditions: [condition('spoof_suspected')], recovery: keyRecovery(), rehearsal },
  })
  const settled = expectDecided(decideSettle({ ...facts, node: knocked })).node
  assert.deepEqual([settled.conditions, settled.recovery, settled.rehearsal], [[], keyRecovery(), rehearsal])
})

test('where the profile asks for two people two have to say it, and neither word is a yes to a recovery', () => {
  const profile = profileRow('high-assurance')
  const first = expectDecided(decideSettle({ ...facts, profile }))
  assert.deepEqual(entryTypesOf(first), ['node.settled'])
  assert.deepEqual(
    first.node.conditions.map(({ evidence }) => evidence['settled_by']),
    ['operator:alice', 'operator:alice', undefined],
  )
  assert.deepEqual([first.node.recovery, first.node.approvals], [keyRecovery(), []])
  const next = { ...facts, profile, node: { value: first.node, version: 8 } }
  expectRefused(decideSettle(next), 'NODE_STATE_CONFLICT', /operator:alice has settled .* another person/)
  const second = expectDecided(decideSettle({ ...next, by: bob }))
  assert.deepEqual([second.node.conditions, second.node.recovery], [[condition('disk_full')], null])
  assert.deepEqual([second.change.entries[0].body['said'], second.change.entries[0].body['complete']], [2, true])
})

test('settle is refused where there is no duplicate, where no machine is connected, and after a denial', () => {
  const refused = (row: typeof node, code: Parameters<typeof expectRefused>[1], why?: RegExp) =>
    expectRefused(decideSettle({ ...facts, node: row }), code, why)
  refused(nodeRow('active', { conditions: [condition('needs_approval')] }), 'NODE_STATE_CONFLICT', /has no duplicate/)
  for (const kind of ['enrolled', 'inactive'] as const) {
    refused(nodeRow(kind, { conditions: [duplicate] }), 'NODE_STATE_CONFLICT', /no machine is connected/)
  }
  expectRefused(decideSettle({ ...facts, connected: false }), 'NODE_STATE_CONFLICT', /no machine is connected/)
  refused(nodeRow('quarantined', { conditions: [duplicate] }), 'NODE_QUARANTINED')
  refused(nodeRow('revoked'), 'NODE_REVOKED')
  const denied = keyRecovery({ denied: { by: 'operator:bob', atMs: noonMs } })
  refused(
    nodeRow('active', { conditions: [duplicate], recovery: denied }),
    'NODE_STATE_CONFLICT',
    /operator:bob said no/,
  )
})
