import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import {
  alice,
  domainRow,
  hour,
  memberships,
  nodeRow,
  noonMs,
  row,
  vclusterRow,
} from '../../../test/fakes/sample-rows.ts'
import { keyEnded, keyOnRecord, lineRow, someRollout, someTaskId, taskRow } from '../../../test/fakes/task-rows.ts'
import { decideCancel } from './end-task.ts'
import { decideQueue, type QueueFacts } from './queue-task.ts'
import { emptyLine, mostQueued, mostQueuedOfNode, taskLifeLimitMs } from './task.ts'

type Wanted = QueueFacts['wanted']

const queue = (changes: Partial<QueueFacts> = {}, wanted: Partial<Wanted> = {}) =>
  decideQueue({
    ...{ existing: null, queuer: keyOnRecord(), applier: null, node: nodeRow('active', { assignment: 'blue' }) },
    ...{ vcluster: vclusterRow('blue', { tasks: { types: ['service'] } }), domain: domainRow(), line: null },
    tally: { of: 'operator:key-1', row: null },
    ...{ queued: 0, queuedOf: new Map(), correlation: 'call-7', by: alice, nowMs: noonMs, ...changes },
    wanted: {
      ...{ id: someTaskId, type: 'service', parameters: { name: 'dcgm', action: 'restart' }, lifeMs: hour },
      ...{ rollout: null, ...wanted },
    },
  })

test('a task of a rollout needs the rights of who applied its plan as well, and relies on that key', () => {
  const applierOf = (role: 'viewer' | 'operator') => ({
    ...keyOnRecord(role),
    reads: [{ row: 'operator-key', key: 'hash-of-key-2', version: 8 } as const],
  })
  const verdict = expectDecided(queue({ applier: applierOf('operator') }))
  assert.ok(readsOf(verdict).includes('operator-key/hash-of-key-2@8'))
  assert.equal(verdict.task.queuedBy.id, 'key-1')
  const refusalOf = (applier: QueueFacts['applier']): string => {
    const refusal = queue({ applier })
    return refusal.kind === 'refused' ? refusal.code : refusal.kind
  }
  assert.equal(refusalOf(applierOf('viewer')), 'ROLE_FORBIDDEN')
  assert.equal(refusalOf(keyEnded), 'OPERATOR_KEY_INVALID')
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
  assert.deepEqual(writesOf(verdict, 'task-line'), [{ ...emptyLine('gpu-001'), counter: 0, queued: 1, dispatched: 0 }])
})

test('no task lives for more than a day', () => {
  assert.equal(expectDecided(queue({}, { lifeMs: 100 * hour })).task.expiresAtMs, noonMs + taskLifeLimitMs)
})

test('the same request again is the same task, and another under its key is refused', () => {
  const existing = taskRow({
    createdAtMs: noonMs - hour,
    expiresAtMs: noonMs,
    state: { kind: 'expired', atMs: noonMs },
  })
  const again = queue({ existing }, { parameters: { action: 'restart', name: 'dcgm' } })
  assert.deepEqual(again, { kind: 'unchanged', task: existing.value })
  expectRefused(queue({ existing }, { parameters: { name: 'dcgm', action: 'stop' } }), 'IDEMPOTENCY_CONFLICT')
  expectRefused(queue({ existing }, { type: 'cleanup' }), 'IDEMPOTENCY_CONFLICT', /task_a+ is a task of type service/)
  expectRefused(queue({ existing }, { lifeMs: 2 * hour }), 'IDEMPOTENCY_CONFLICT', /lives 3600000 ms/)
  const replaced = nodeRow('active', { assignment: 'blue', epoch: 5 })
  expectRefused(queue({ existing, node: replaced }), 'IDEMPOTENCY_CONFLICT', /for epoch 4 of gpu-001/)
  // A leader that goes on where another stopped asks for what that one has made already.
  const rollout = row(someRollout())
  assert.equal(queue({ existing, node: replaced }, { rollout }).kind, 'unchanged')
})

test('a node without an identity that could take it is refused with the reason', () => {
  const ofNode = (kind: Parameters<typeof nodeRow>[0], changes = {}) =>
    queue({ node: nodeRow(kind, { assignment: 'blue', ...changes }) })
  expectRefused(ofNode('revoked'), 'NODE_REVOKED')
  expectRefused(ofNode('quarantined'), 'NODE_QUARANTINED')
  expectRefused(ofNode('registered'), 'NODE_STATE_CONFLICT', /has to enroll first/)
  expectRefused(ofNode('inactive', { membership: { ...memberships.inactive, slots: null } }), 'NODE_STATE_CONFLICT')
  for (const kind of ['enrolled', 'active', 'inactive'] as const) expectDecided(ofNode(kind))
})

test('a type that is not allowed there, or that there is not, is refused', () => {
  expectRefused(queue({}, { type: 'cleanup' }), 'TASK_TYPE_NOT_ALLOWED', /vCluster blue allows service/)
  expectRefused(queue({}, { type: 'shell' }), 'TASK_TYPE_NOT_ALLOWED', /no such type/)
  expectRefused(queue({ queuer: keyEnded }), 'OPERATOR_KEY_INVALID')
})

test('a worker is told the state of nodes in its own vClusters only', () => {
  const ofWorker = (vclusters: readonly string[]) => ({
    queuer: {
      reads: [],
      caller: { kind: 'worker', id: 'east.pod', name: 'east.pod', types: ['service'], vclusters },
    } as const,
    node: nodeRow('quarantined', { assignment: 'blue' }),
  })
  expectRefused(queue(ofWorker(['blue'])), 'NODE_QUARANTINED')
  expectRefused(queue(ofWorker(['red'])), 'NODE_NOT_FOUND', /no node gpu-001 is in a vCluster of the issuer/)
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

test('workers take a half of the places at most, those of one issuer a quarter, and operators find the rest', () => {
  const ofWorker = {
    reads: [],
    caller: { kind: 'worker', id: 'east.pod', name: 'east.pod', types: ['service'], vclusters: ['blue'] },
  } as const
  const line = (queuedOf: Record<string, number>) => ({ line: lineRow({ queued: 600, queuedOf }) })
  const refused = (changes: Partial<QueueFacts>, why: RegExp) => {
    expectRefused(queue({ queuer: ofWorker, ...changes }), 'TASK_QUEUE_FULL', why)
    expectDecided(queue(changes))
  }
  refused(line({ east: 250 }), /250 tasks of workers of east wait for gpu-001/)
  refused(line({ east: 1, west: 249, north: 250 }), /500 tasks of workers wait for gpu-001/)
  refused({ queuedOf: new Map([['east', 25_000]]) }, /25000 tasks of workers of east wait in this domain/)
  refused({ queuedOf: new Map([['west', 50_000]]) }, /50000 tasks of workers wait in this domain/)
  const next = expectDecided(queue({ queuer: ofWorker, ...line({ east: 249, west: 250 }) }))
  assert.deepEqual(writesOf(next, 'task-line'), [lineRow({ queued: 601, queuedOf: { east: 250, west: 250 } }).value])
})

test('what ends makes a place free for the workers of its issuer, whatever that is called', () => {
  const task = taskRow({ queuedBy: { kind: 'worker', id: 'constructor.pod', name: 'constructor.pod' } })
  const cancelled = (before: Record<string, number>, after: Record<string, number>) => {
    const line = lineRow({ queuedOf: before })
    const verdict = expectDecided(decideCancel({ task, line, why: '', by: alice, nowMs: noonMs }))
    assert.deepEqual(writesOf(verdict, 'task-line'), [{ ...line.value, queued: 0, queuedOf: after }])
  }
  cancelled({ constructor: 2, east: 1 }, { constructor: 1, east: 1 })
  cancelled({ constructor: 1 }, {})
  // A line that was lost counts from nothing.
  cancelled({}, {})
})
