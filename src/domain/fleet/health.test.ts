import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'
import { alice, nodeRow, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { decideHealth } from './health.ts'
import { schedulingOf } from './scheduling.ts'

const sick = { state: 'unhealthy', reason: 'xid 79', evidence: { gpu: 3 } } as const
const well = { state: 'healthy' } as const
const facts = { node: nodeRow('active', { assignment: 'vc1' }), by: alice, nowMs: noonMs }

test('an unhealthy node is unavailable, and comes back when it is healthy again', () => {
  const raised = expectDecided(decideHealth({ ...facts, report: sick }))
  assert.deepEqual(schedulingOf(raised.node), { state: 'unavailable', reasons: ['unhealthy'] })
  assert.deepEqual(entryTypesOf(raised), ['node.condition_raised'])
  const cleared = expectDecided(decideHealth({ ...facts, node: row(raised.node), report: well }))
  assert.equal(schedulingOf(cleared.node).state, 'schedulable')
  assert.deepEqual(entryTypesOf(cleared), ['node.condition_cleared'])
})

test('what a checker repeats is not written again; its first words stay', () => {
  const raised = expectDecided(decideHealth({ ...facts, report: sick }))
  const again = decideHealth({ ...facts, node: row(raised.node), report: { ...sick, reason: 'other words' } })
  assert.equal(again.kind, 'unchanged')
  assert.equal(decideHealth({ ...facts, report: well }).kind, 'unchanged')
})

test('a tombstone has no health', () => {
  expectRefused(decideHealth({ ...facts, node: nodeRow('revoked'), report: sick }), 'NODE_REVOKED')
})
