import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf } from '../../test/fakes/expect-decision.ts'
import { conditionNames, membershipKinds, type Condition, type Node } from './node.ts'
import { alice, nodeRow, noonMs } from '../../test/fakes/sample-rows.ts'
import { blocksScheduling, decideDrain, decideDrained, decideUndrain, schedulingOf } from './scheduling.ts'

const facts = (drain: Node['drain']) => ({ node: nodeRow('active', { drain }), by: alice, nowMs: noonMs })
const condition = (name: Condition['name']): Condition => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })

test('a node drains, is drained, and comes back by undrain', () => {
  const draining = expectDecided(decideDrain(facts('none')))
  assert.equal(draining.node.drain, 'draining')
  assert.deepEqual(entryTypesOf(draining), ['node.draining'])
  assert.deepEqual(readsOf(draining), ['node/gpu-001@7'])
  assert.equal(expectDecided(decideDrained(facts('draining'))).node.drain, 'drained')
  assert.equal(expectDecided(decideUndrain(facts('drained'))).node.drain, 'none')
  assert.equal(expectDecided(decideUndrain(facts('draining'))).node.drain, 'none')
})

test('a drain step out of order is refused and says where the node is', () => {
  expectRefused(decideDrain(facts('draining')), 'NODE_STATE_CONFLICT', /draining already/)
  expectRefused(decideDrain(facts('drained')), 'NODE_STATE_CONFLICT', /drained already/)
  expectRefused(decideDrained(facts('none')), 'NODE_STATE_CONFLICT', /not draining/)
  expectRefused(decideUndrain(facts('none')), 'NODE_STATE_CONFLICT', /not draining/)
})

test('a tombstone takes no drain', () => {
  for (const decide of [decideDrain, decideDrained, decideUndrain]) {
    expectRefused(decide({ node: nodeRow('revoked'), by: alice, nowMs: noonMs }), 'NODE_REVOKED')
  }
})

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
    reasons: ['not active: quarantined', 'no vCluster: maintenance mode', 'clock_skew', 'disk_full'],
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
