import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, hour, memberships, nodeRow, noonMs, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { keyEnded, keyOnRecord, lineRow, someTaskId, taskRow } from '../../../test/fakes/task-rows.ts'
import { decideQueue, type QueueFacts } from './queue-task.ts'
import { mostQueued, mostQueuedOfNode, taskLifeLimitMs } from './task.ts'

type Wanted = QueueFacts['wanted']

const queue = (changes: Partial<QueueFacts> = {}, wanted: Partial<Wanted> = {}) =>
  decideQueue({
    ...{ existing: null, queuer: keyOnRecord(), node: nodeRow('active', { assignment: 'blue' }) },
    ...{ vcluster: vclusterRow('blue', { tasks: { types: ['service'] } }), domain: domainRow(), line: null },
    ...{ queued: 0, correlation: 'call-7', by: alice, nowMs: noonMs, ...changes },
    wanted: {
      ...{ id: someTaskId, type: 'service', parameters: { name: 'dcgm', action: 'restart' }, lifeMs: hour },
      ...{ rollout: null, ...wanted },
    },
  })

test('a task is queued for the epoch of its node, and relies on everything that allows it', () => {
  const verdict = expectDecided(queue())
  assert.deepEqual(verdict.task.state, { kind: 'queued' })
  assert.deepEqual([verdict.task.epoch, verdict.task.expiresAtMs], [4, noonMs + hour])
  assert.deepEqual(verdict.task.queuedBy, { kind: 'operator', id: 'key-1', name: 'alice' })
  assert.deepEqual(entryTypesOf(verdict), ['task.queued'])
  assert.equal(verdict.change.entries[0]?.correlation, 'call-7')
  assert.deepEqual(readsOf(verdict), [
    `task/${someTaskId}@0`,
    'task-line/gpu-001@0',
    'node/gpu-001@7',
    'domain/domain@3',
    'vcluster/blue@4',
    'operator-key/hash-of-key-1@3',
  ])
  assert.deepEqual(writesOf(verdict, 'task-line'), [{ node: 'gpu-001', counter: 0, queued: 1, dispatched: 0 }])
})

test('no task lives for more than a day', () => {
  assert.equal(expectDecided(queue({}, { lifeMs: 100 * hour })).task.expiresAtMs, noonMs + taskLifeLimitMs)
})

test('the same request again is the same task, and another under its key is refused', () => {
  const existing = taskRow({ state: { kind: 'expired', atMs: noonMs } })
  const again = queue({ existing }, { parameters: { action: 'restart', name: 'dcgm' } })
  assert.deepEqual(again, { kind: 'unchanged', task: existing.value })
  expectRefused(queue({ existing }, { parameters: { name: 'dcgm', action: 'stop' } }), 'IDEMPOTENCY_CONFLICT')
  expectRefused(queue({ existing }, { type: 'cleanup' }), 'IDEMPOTENCY_CONFLICT', /task_a+ is a task of type service/)
})

test('a node without an identity that could take it is refused with the reason', () => {
  const ofNode = (kind: Parameters<typeof nodeRow>[0], changes = {}) =>
    queue({ node: nodeRow(kind, { assignment: 'blue', ...changes }) })
  expectRefused(ofNode('revoked'), 'NODE_REVOKED')
  expectRefused(ofNode('quarantined'), 'NODE_QUARANTINED')
  expectRefused(ofNode('registered'), 'NODE_STATE_CONFLICT', /has to enrol first/)
  expectRefused(ofNode('inactive', { membership: { ...memberships.inactive, slots: null } }), 'NODE_STATE_CONFLICT')
  for (const kind of ['enrolled', 'active', 'inactive'] as const) expectDecided(ofNode(kind))
})

test('a type that is not allowed there, or that there is not, is refused', () => {
  expectRefused(queue({}, { type: 'cleanup' }), 'TASK_TYPE_NOT_ALLOWED', /vCluster blue allows service/)
  expectRefused(queue({}, { type: 'shell' }), 'TASK_TYPE_NOT_ALLOWED', /no such type/)
  expectRefused(queue({ queuer: keyEnded }), 'OPERATOR_KEY_INVALID')
})

test('no more wait for a node, and in a domain, than the limits', () => {
  expectRefused(
    queue({ line: lineRow({ queued: mostQueuedOfNode }) }),
    'TASK_QUEUE_FULL',
    /1000 tasks wait for gpu-001/,
  )
  expectRefused(queue({ queued: mostQueued }), 'TASK_QUEUE_FULL', /in this domain/)
  expectDecided(queue({ line: lineRow({ queued: mostQueuedOfNode - 1 }), queued: mostQueued - 1 }))
})
