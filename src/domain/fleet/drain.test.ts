import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, allocationRow, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { Allocation, AllocationState } from './allocation.ts'
import type { Row } from '#domain/core/change.ts'
import { decideDrain, decideDrained, decideUndrain } from './drain.ts'
import type { Node } from '#domain/core/node.ts'

const facts = (drain: Node['drain'], allocations: readonly Row<Allocation>[] = []) => ({
  node: nodeRow('active', { drain, allocations: allocations.length }),
  allocations,
  by: alice,
  nowMs: noonMs,
})

const releasing: AllocationState = { kind: 'releasing', atMs: noonMs - 1, why: 'gpu-001 drains' }
const states = (verdict: { readonly change: Parameters<typeof writesOf>[0]['change'] }): unknown[] =>
  writesOf({ kind: 'decided', change: verdict.change }, 'allocation').map((one) => (one as Allocation).state)

test('a node with nothing on it is drained at once, and the journal has both steps', () => {
  const drained = expectDecided(decideDrain(facts('none')))
  assert.equal(drained.node.drain, 'drained')
  assert.deepEqual(entryTypesOf(drained), ['node.draining', 'node.drained'])
  assert.deepEqual(readsOf(drained), ['node/gpu-001@7'])
})

test('a node with work drains until it has moved: each owner is asked through the journal, in the same change', () => {
  const draining = expectDecided(decideDrain(facts('none', [allocationRow('a1'), allocationRow('a2')])))
  assert.equal(draining.node.drain, 'draining')
  assert.equal(draining.node.allocations, 2)
  const asked = 'allocation.release_requested'
  assert.deepEqual(entryTypesOf(draining), ['node.draining', asked, asked])
  assert.deepEqual(readsOf(draining), ['node/gpu-001@7', 'allocation/a1@2', 'allocation/a2@2'])
  const state = { kind: 'releasing', atMs: noonMs, why: 'gpu-001 drains' }
  assert.deepEqual(states(draining), [state, state])
})

test('an undrain lets what was asked for stay', () => {
  const undrained = expectDecided(decideUndrain(facts('draining', [allocationRow('a1', { state: releasing })])))
  assert.equal(undrained.node.drain, 'none')
  assert.deepEqual(entryTypesOf(undrained), ['node.undrained', 'allocation.release_withdrawn'])
  assert.deepEqual(states(undrained), [{ kind: 'running' }])
  assert.equal(expectDecided(decideUndrain(facts('drained'))).node.drain, 'none')
})

test('a drain cannot be completed while something runs on the node', () => {
  assert.equal(expectDecided(decideDrained(facts('draining'))).node.drain, 'drained')
  const busy = facts('draining', [allocationRow('a1', { state: releasing })])
  expectRefused(decideDrained(busy), 'NODE_STATE_CONFLICT', /^1 allocation is still on gpu-001, among them a1: /)
})

test('a drain step out of order is refused and says where the node is', () => {
  expectRefused(decideDrain(facts('draining')), 'NODE_STATE_CONFLICT', /draining already/)
  expectRefused(decideDrain(facts('drained')), 'NODE_STATE_CONFLICT', /drained already/)
  expectRefused(decideDrained(facts('none')), 'NODE_STATE_CONFLICT', /not draining/)
  expectRefused(decideUndrain(facts('none')), 'NODE_STATE_CONFLICT', /not draining/)
})

test('a tombstone takes no drain', () => {
  for (const decide of [decideDrain, decideDrained, decideUndrain]) {
    expectRefused(decide({ node: nodeRow('revoked'), allocations: [], by: alice, nowMs: noonMs }), 'NODE_REVOKED')
  }
})
