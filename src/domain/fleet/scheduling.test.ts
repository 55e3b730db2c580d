import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { conditionNames, membershipKinds, type Condition, type Node } from '#domain/core/node.ts'
import { nodeRow, noonMs, alice, row } from '../../../test/fakes/sample-rows.ts'
import { blocksScheduling, schedulingOf, decideHealth } from './scheduling.ts'
import { entryTypesOf, expectDecided, expectRefused } from '../../../test/fakes/expect-decision.ts'

const condition = (name: Condition['name']): Condition => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })

test('a node is schedulable only when active, assigned and free of blocking conditions', () => {
  for (const kind of membershipKinds) {
    for (const assignment of [null, 'vc1']) {
      for (const name of [null, ...conditionNames]) {
        const conditions = name === null ? [] : [condition(name)]
        const { state, reasons } = schedulingOf(nodeRow(kind, { assignment, conditions }).value)
        const free = kind === 'active' && assignment !== null && (name === null || !blocksScheduling[name])
        assert.equal(state, free ? 'schedulable' : 'unavailable')
        assert.equal(reasons.length === 0, free)
      }
    }
  }
})

test('every reason is named', () => {
  const node = nodeRow('quarantined', { conditions: [condition('clock_skew'), condition('disk_full')] }).value
  assert.deepEqual(schedulingOf(node), {
    state: 'unavailable',
    reasons: ['not active: quarantined', 'not assigned to a vCluster (maintenance mode)', 'clock_skew', 'disk_full'],
  })
})

test('a drained node stays drained while it is away; one that vanishes while draining is unavailable', () => {
  const state = (kind: 'active' | 'inactive', drain: Node['drain']) =>
    schedulingOf(nodeRow(kind, { drain, assignment: 'vc1' }).value).state
  assert.equal(state('active', 'draining'), 'draining')
  assert.equal(state('inactive', 'draining'), 'unavailable')
  assert.equal(state('active', 'drained'), 'drained')
  assert.equal(state('inactive', 'drained'), 'drained')
})

test('one slot that could not be cleaned blocks the whole machine, by name (R-017)', () => {
  const slot = (name: string, state: 'approved' | 'cleanup_blocked') => ({ name, state, detail: null, sinceMs: noonMs })
  const scheduling = (...slots: ReturnType<typeof slot>[]) =>
    schedulingOf(nodeRow('active', { assignment: 'vc1', machine: { ...nothingTagged, slots } }).value)
  assert.equal(scheduling(slot('gpu0', 'approved'), slot('gpu1', 'approved')).state, 'schedulable')
  assert.deepEqual(scheduling(slot('gpu0', 'approved'), slot('gpu1', 'cleanup_blocked')), {
    state: 'unavailable',
    reasons: ['slot gpu1: cleanup_blocked'],
  })
})

const sick = { state: 'unhealthy', reason: 'xid 79', evidence: { gpu: 3 } } as const
const well = { state: 'healthy' } as const
const facts = { node: nodeRow('active', { assignment: 'vc1' }), failedChecks: [], by: alice, nowMs: noonMs }

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

const failedChecks = [{ name: 'gpus', line: '7 of 8 GPUs' }]
const byCheck = nodeRow('active', {
  assignment: 'vc1',
  conditions: [{ name: 'unhealthy', sinceMs: 1, reason: 'check gpus failed', evidence: { agent_check: 'gpus' } }],
})

test("a check of the agent's own is not answered by hand: it ends when it passes", () => {
  const ok = decideHealth({ ...facts, node: byCheck, failedChecks, report: well })
  expectRefused(ok, 'NODE_STATE_CONFLICT', /check gpus failed/)
  // The agent is gone, and with it the check.
  expectDecided(decideHealth({ ...facts, node: byCheck, report: well }))
})

test('the report of an operator outlives the check that failed before it, and gives way to one that still fails', () => {
  const said = expectDecided(decideHealth({ ...facts, node: byCheck, failedChecks, report: sick }))
  assert.deepEqual([said.node.conditions[0]?.reason, said.node.conditions.length], ['xid 79', 1])
  const back = expectDecided(decideHealth({ ...facts, node: row(said.node), failedChecks, report: well }))
  assert.deepEqual(back.node.conditions[0]?.evidence, { agent_check: 'gpus', says: '7 of 8 GPUs' })
})
