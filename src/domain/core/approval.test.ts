import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalComplete, decideApprove, decideDeny, recoveryApproved } from './approval.ts'
import { entryTypesOf, expectDecided, expectRefused, readsOf } from '../../../test/fakes/expect-decision.ts'
import type { Condition } from './node.ts'
import { alice, bob, keyRecovery, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'

const waits: Condition = { name: 'needs_approval', sinceMs: noonMs, reason: 'r', evidence: {} }
const two = profileRow('high-assurance')
const facts = { node: nodeRow('inactive', { conditions: [waits] }), profile: two, by: alice, nowMs: noonMs }

test('two people have to approve where the profile asks for two, and the same one does not count twice', () => {
  const first = expectDecided(decideApprove(facts))
  assert.deepEqual(first.node.approvals, [{ by: 'operator:alice', atMs: noonMs }])
  assert.equal(approvalComplete(first.node, two.value), false)
  assert.deepEqual(first.node.conditions, [waits])
  assert.deepEqual(entryTypesOf(first), ['node.approved'])
  assert.deepEqual(readsOf(first), ['node/gpu-001@7', 'profile/high-assurance@5'])

  const node = { value: first.node, version: 8 }
  expectRefused(decideApprove({ ...facts, node }), 'NODE_STATE_CONFLICT', /operator:alice has approved/)
  const second = expectDecided(decideApprove({ ...facts, node, by: bob }))
  assert.equal(approvalComplete(second.node, two.value), true)
  assert.deepEqual(second.node.conditions, [])
  assert.deepEqual(second.change.entries[0].body, { approvals: 2, needed: 2, complete: true })
})

test('more approvals than needed are refused', () => {
  const node = nodeRow('inactive', { approvals: [{ by: 'operator:bob', atMs: noonMs }] })
  const profile = profileRow('mesh-paas')
  expectRefused(decideApprove({ ...facts, node, profile }), 'NODE_STATE_CONFLICT', /all approvals/)
})

test('only a node that waits for people can be approved', () => {
  expectRefused(decideApprove({ ...facts, node: nodeRow('revoked') }), 'NODE_REVOKED')
  expectRefused(decideApprove({ ...facts, node: nodeRow('quarantined') }), 'NODE_QUARANTINED')
  for (const kind of ['registered', 'active'] as const) {
    expectRefused(decideApprove({ ...facts, node: nodeRow(kind) }), 'NODE_STATE_CONFLICT', /waits for no approval/)
    expectDecided(decideApprove({ ...facts, node: nodeRow(kind, { conditions: [waits] }) }))
  }
  expectDecided(decideApprove({ ...facts, node: nodeRow('enrolled') }))
})

test('a profile without approvals is complete from the start and takes no approval of a node that waits for none', () => {
  const profile = profileRow('gpu-cloud')
  assert.equal(approvalComplete(nodeRow('inactive').value, profile.value), true)
  const node = nodeRow('inactive')
  expectRefused(decideApprove({ ...facts, node, profile }), 'NODE_STATE_CONFLICT', /asks for no approval/)
})

test('one approval lets a waiting recovery through, also where the profile needs none for a return', () => {
  const profile = profileRow('gpu-cloud')
  const node = nodeRow('active', { conditions: [waits], recovery: keyRecovery() })
  const approved = expectDecided(decideApprove({ ...facts, node, profile })).node
  assert.deepEqual(approved.conditions, [])
  assert.equal(recoveryApproved(approved, profile.value), true)
})

test('a no stands until enough people have taken it back, and voids the yes that was there before it', () => {
  const begun = nodeRow('inactive', {
    conditions: [waits],
    approvals: [{ by: 'operator:bob', atMs: noonMs }],
    recovery: keyRecovery(),
  })
  const denied = expectDecided(decideDeny({ node: begun, by: alice, nowMs: noonMs }))
  assert.deepEqual(entryTypesOf(denied), ['node.recovery_denied'])
  assert.deepEqual(denied.node.recovery?.denied, { by: 'operator:alice', atMs: noonMs })
  assert.deepEqual([denied.node.conditions, denied.node.approvals], [[], []])

  const again = { value: denied.node, version: 8 }
  expectRefused(
    decideDeny({ node: again, by: bob, nowMs: noonMs }),
    'NODE_STATE_CONFLICT',
    /operator:alice has said no/,
  )
  const first = expectDecided(decideApprove({ ...facts, node: again })).node
  assert.notEqual(first.recovery?.denied, null)
  const second = expectDecided(decideApprove({ ...facts, node: { value: first, version: 9 }, by: bob })).node
  assert.equal(second.recovery?.denied, null)
})

test('what has nothing to recover with needs no denial', () => {
  expectRefused(decideDeny({ node: nodeRow('active'), by: alice, nowMs: noonMs }), 'NODE_STATE_CONFLICT', /nothing/)
  expectRefused(decideDeny({ node: nodeRow('revoked'), by: alice, nowMs: noonMs }), 'NODE_REVOKED')
})

test('a yes says nothing about who holds an identity', () => {
  const duplicate: Condition = { ...waits, name: 'duplicate_identity' }
  const node = nodeRow('active', { conditions: [duplicate], recovery: keyRecovery() })
  const profile = profileRow('gpu-cloud')
  expectRefused(decideApprove({ ...facts, node, profile }), 'NODE_STATE_CONFLICT', /waits for no approval/)
  const waiting = nodeRow('active', { conditions: [waits, duplicate], recovery: keyRecovery() })
  assert.deepEqual(expectDecided(decideApprove({ ...facts, node: waiting, profile })).node.conditions, [duplicate])
})
