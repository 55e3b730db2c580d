import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, nodeRow, noonMs, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { decideAssign, decideMove, decideUnassign } from './assignment.ts'
import type { Node } from '#domain/core/node.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { VCluster } from './vcluster.ts'

const to = { name: 'training', row: vclusterRow('training') }
const facts = (changes: Partial<Node> = {}, kind: Node['membership']['kind'] = 'active') => ({
  node: nodeRow(kind, changes),
  by: alice,
  nowMs: noonMs,
})
const staying = { force: false, extraParts: {}, deleted: null }
const refused = (verdict: { kind: string } | Refusal, code: string, says: RegExp): void => {
  assert.ok(isRefusal(verdict) && verdict.code === code, JSON.stringify(verdict))
  assert.match(verdict.detail ?? '', says)
}

test('a node is assigned with everything it has, relying on the vCluster being there', () => {
  const before = facts().node.value
  const done = decideAssign({ ...facts(), to })
  assert.ok(!isRefusal(done))
  assert.deepEqual(done.node, { ...before, assignment: 'training' })
  assert.deepEqual(done.change.reads, [
    { row: 'node', key: 'gpu-001', version: 7 },
    { row: 'vcluster', key: 'training', version: 4 },
  ])
  assert.deepEqual(
    done.change.writes.map(({ put }) => put),
    ['node'],
  )
})

test('a move is one change and one entry, and touches no certificate, slot or epoch', () => {
  const from = facts({ assignment: 'inference' })
  const done = decideMove({ ...from, to, ...staying })
  assert.ok(!isRefusal(done))
  assert.deepEqual(done.node, { ...from.node.value, assignment: 'training' })
  assert.deepEqual(
    done.change.entries.map(({ type, body }) => [type, body]),
    [['node.moved', { vcluster: 'training', was: 'inference' }]],
  )
  assert.deepEqual(
    done.change.writes.map(({ put }) => put),
    ['node'],
  )
})

test('the refusal of a wrong assign, move or unassign names the right command', () => {
  const elsewhere = facts({ assignment: 'inference' })
  refused(decideAssign({ ...elsewhere, to }), 'NODE_STATE_CONFLICT', /muster node move gpu-001 --to training/)
  refused(decideMove({ ...facts(), to, ...staying }), 'NODE_STATE_CONFLICT', /muster node assign gpu-001 --to training/)
  refused(decideAssign({ ...facts({ assignment: 'training' }), to }), 'NODE_STATE_CONFLICT', /in training already/)
  refused(decideMove({ ...facts({ assignment: 'training' }), to, ...staying }), 'NODE_STATE_CONFLICT', /already/)
  refused(decideUnassign({ ...facts(), ...staying }), 'NODE_STATE_CONFLICT', /no vCluster already/)
})

test('no node gets into a vCluster that is not there, deleted or closed, and no tombstone into any', () => {
  const into = (name: string, changes: Partial<VCluster> | null) => ({
    name,
    row: changes === null ? null : vclusterRow(name, changes),
  })
  refused(decideAssign({ ...facts(), to: into('nowhere', null) }), 'VCLUSTER_NOT_FOUND', /nowhere/)
  refused(decideAssign({ ...facts(), to: into('training', { deletedAtMs: noonMs }) }), 'VCLUSTER_NOT_FOUND', /training/)
  refused(decideAssign({ ...facts(), to: into('training', { closed: true }) }), 'NODE_STATE_CONFLICT', /closed=false/)
  for (const verdict of [
    decideAssign({ ...facts({}, 'revoked'), to }),
    decideMove({ ...facts({ assignment: 'inference' }, 'revoked'), to, ...staying }),
    decideUnassign({ ...facts({ assignment: 'inference' }, 'revoked'), ...staying }),
  ])
    assert.ok(isRefusal(verdict) && verdict.code === 'NODE_REVOKED')
})

test('a node with work on it stays, unless it is forced, and then leaves without it', () => {
  const busy = facts({ assignment: 'inference', allocations: 2 })
  refused(decideUnassign({ ...busy, ...staying }), 'NODE_STATE_CONFLICT', /2 allocations.*muster node drain gpu-001/)
  refused(decideMove({ ...busy, to, ...staying }), 'NODE_STATE_CONFLICT', /muster node drain gpu-001/)
  const forced = decideUnassign({ ...busy, ...staying, force: true })
  assert.ok(!isRefusal(forced))
  assert.deepEqual([forced.node.assignment, forced.node.allocations], [null, 0])
})

test('drift from what a former vCluster asked for is over with it', () => {
  const condition = { name: 'config_drift', sinceMs: noonMs - 1000, reason: 'r', evidence: {} } as const
  const drifted = facts({ assignment: 'inference', conditions: [condition] })
  const done = decideUnassign({ ...drifted, ...staying })
  assert.ok(!isRefusal(done))
  assert.deepEqual(done.node.conditions, [])
  assert.deepEqual(
    done.change.entries.map(({ type }) => type),
    ['node.unassigned', 'node.condition_cleared'],
  )
})

test('a deletion takes out no node that has moved to another vCluster meanwhile', () => {
  const left = facts({ assignment: 'inference' })
  refused(decideUnassign({ ...left, ...staying, force: true, deleted: 'training' }), 'NODE_STATE_CONFLICT', /has left/)
})
