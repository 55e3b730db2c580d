import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuse } from '#domain/core/refusal.ts'
import { nodeRow } from '../../../test/fakes/sample-rows.ts'
import { changeOf, type NodeChange } from './node-change.ts'

const changes: readonly NodeChange[] = [
  { verb: 'drain' },
  { verb: 'drained' },
  { verb: 'undrain' },
  { verb: 'release' },
  { verb: 'approve' },
  { verb: 'deny' },
  { verb: 'quarantine', reason: 'odd' },
  { verb: 'assign', to: 'blue' },
  { verb: 'move', to: 'blue', force: true },
  { verb: 'unassign', force: true },
  { verb: 'health', unhealthy: 'no cooling' },
  { verb: 'tag', add: ['h100'], remove: ['a100'] },
  { verb: 'machine', report: { firmware: 'slice-vm', readiness: null, slots: [], removeSlots: [] } },
  { verb: 'provisioning', state: 'deploying', detail: null },
]

const node = nodeRow('active', { assignment: 'red', allocations: 2 }).value

test('only a quarantine takes access away, and of a node that has any', () => {
  for (const change of changes) {
    const { loses, unrecoverable } = changeOf(node, change, { kind: 'changes' })
    assert.deepEqual([loses, unrecoverable !== null], change.verb === 'quarantine' ? ['at once', true] : [null, false])
  }
  const waiting = nodeRow('registered').value
  assert.equal(changeOf(waiting, { verb: 'quarantine', reason: 'odd' }, { kind: 'changes' }).loses, null)
})

test('a line says what becomes of the node and of its work, or why nothing does', () => {
  const effect = (change: NodeChange): string => changeOf(node, change, { kind: 'changes' }).effect
  assert.equal(effect({ verb: 'drain' }), 'draining: the owners of 2 allocations are asked to move')
  assert.equal(effect({ verb: 'move', to: 'blue', force: true }), 'moved from red to blue; 2 allocations released')
  assert.equal(effect({ verb: 'tag', add: ['h100'], remove: ['a100'] }), '+h100 -a100')
  const report = {
    ...{ firmware: 'slice-vm', readiness: { ready: false, evidence: {} } },
    ...{ slots: [{ name: 'gpu0', state: 'approved' as const, detail: null }], removeSlots: ['gpu1'] },
  }
  assert.equal(effect({ verb: 'machine', report }), 'firmware slice-vm, not ready, slot gpu0: approved, no slot gpu1')
  for (const change of changes) {
    const refusal = refuse('NODE_STATE_CONFLICT', 'it is busy')
    assert.equal(
      changeOf(node, change, { kind: 'refused', refusal }).effect,
      'refused with NODE_STATE_CONFLICT: it is busy',
    )
    assert.equal(changeOf(node, change, { kind: 'unchanged' }).effect, 'nothing: it is so already')
  }
})

test('the facts are those that a renewal or a report does not change', () => {
  assert.deepEqual(changeOf(node, { verb: 'drain' }, { kind: 'changes' }).facts, [
    'active',
    'epoch 4',
    'in red',
    '2 allocations',
  ])
})
