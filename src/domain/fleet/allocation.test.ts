import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, allocationRow, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import { decideGiveBack, decidePlace, releaseAll, mostAllocations, type Allocation } from './allocation.ts'
import type { Node } from '#domain/core/node.ts'

const wanted = { id: 'a1', vcluster: 'vc1', owner: 'slurm' }
const placing = (changes: Partial<Node> = {}) => ({
  node: nodeRow('active', { assignment: 'vc1', ...changes }),
  wanted,
  existing: null,
  by: alice,
  nowMs: noonMs,
})
const givingBack = (changes: Partial<Node> = {}, allocation: Partial<Allocation> = {}) => ({
  ...{ node: nodeRow('active', { assignment: 'vc1', allocations: 1, ...changes }), by: alice, nowMs: noonMs },
  ...{ allocation: allocationRow('a1', allocation), why: 'finished' },
})

test('work is placed on a schedulable node of its vCluster, which counts it', () => {
  const placed = expectDecided(decidePlace(placing({ allocations: 3 })))
  assert.equal(placed.node.allocations, 4)
  assert.deepEqual(placed.allocation.state, { kind: 'running' })
  assert.deepEqual(entryTypesOf(placed), ['allocation.created'])
  assert.deepEqual(readsOf(placed), ['node/gpu-001@7', 'allocation/a1@0'])
  assert.deepEqual(placed.change.entries[0].body, { allocation: 'a1', owner: 'slurm', vcluster: 'vc1' })
})

test('nothing is placed on a node that is not schedulable, and every reason is listed', () => {
  const sick = { name: 'unhealthy', sinceMs: noonMs, reason: 'r', evidence: {} } as const
  const refused = (changes: Partial<Node>, detail: RegExp) =>
    expectRefused(decidePlace(placing(changes)), 'NODE_NOT_SCHEDULABLE', detail)
  refused({ drain: 'draining', conditions: [sick] }, /^gpu-001: draining, unhealthy$/)
  refused({ assignment: null }, /maintenance mode/)
  refused({ assignment: 'vc2' }, /in vCluster vc2, not in vc1/)
  refused({ allocations: mostAllocations }, /256 allocations/)
  expectRefused(decidePlace({ ...placing(), node: nodeRow('quarantined') }), 'NODE_NOT_SCHEDULABLE', /quarantined/)
})

test('the same id asks for the same thing once: repeated it is answered, also after the release; otherwise refused', () => {
  const existing = allocationRow('a1')
  const again = decidePlace({ ...placing({ drain: 'drained' }), existing })
  assert.deepEqual(again, { kind: 'unchanged', allocation: existing.value })
  const other = { ...placing(), existing, wanted: { ...wanted, owner: 'kueue' } }
  expectRefused(
    decidePlace(other),
    'NODE_STATE_CONFLICT',
    /of slurm in vCluster vc1 on gpu-001: muster allocation show/,
  )
})

test('the last allocation of a draining node ends the drain in the same change', () => {
  const last = expectDecided(decideGiveBack(givingBack({ drain: 'draining' })))
  assert.equal(last.node.drain, 'drained')
  assert.equal(last.node.allocations, 0)
  assert.deepEqual(entryTypesOf(last), ['allocation.released', 'node.drained'])
  const state = { kind: 'released', atMs: noonMs, why: 'finished', by: 'operator:alice', forced: false }
  assert.deepEqual(last.allocation.state, state)
  const notLast = expectDecided(decideGiveBack(givingBack({ drain: 'draining', allocations: 2 })))
  assert.equal(notLast.node.drain, 'draining')
  assert.equal(expectDecided(decideGiveBack(givingBack())).node.drain, 'none')
})

test('what has been released is answered as it is', () => {
  const state = { kind: 'released', atMs: noonMs, why: 'quarantined', by: 'operator:bob', forced: true } as const
  const known = decideGiveBack(givingBack({ allocations: 0 }, { state }))
  assert.deepEqual(known, { kind: 'unchanged', allocation: allocationRow('a1', { state }).value })
})

test('each owner is told which of its work was taken', () => {
  const node = nodeRow('active', { allocations: 2 })
  const allocations = [allocationRow('a1'), allocationRow('a2', { owner: 'kueue' })]
  const taken = releaseAll({ node, allocations, why: 'its node was revoked: stolen', by: alice, nowMs: noonMs })
  assert.deepEqual(
    taken.entries?.map(({ type, node: about, body }) => [type, about, body['owner'], body['forced'], body['why']]),
    ['slurm', 'kueue'].map((owner) => ['allocation.released', 'gpu-001', owner, true, 'its node was revoked: stolen']),
  )
  const written = writesOf(
    { kind: 'decided', change: { reads: [], writes: taken.writes ?? [], entries: [] as never } },
    'allocation',
  )
  assert.ok((written as Allocation[]).every(({ state }) => state.kind === 'released' && state.forced))
})
