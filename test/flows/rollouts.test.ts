// Rollouts over the operator API and a real store: planned first, made a few at a time, held when too many fail, and gone on with by
// whichever replica leads.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { entry, mergeParts, readOf, type Change } from '#domain/core/change.ts'
import { mostOpenRollouts, rolloutBegun } from '#domain/tasks/rollout.ts'
import { emptyLine, mostQueued, mostQueuedOfNode } from '#domain/tasks/task.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { listRollouts } from '#plane/tasks/rollout-routes.ts'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import type { Json } from '../process/operator-call.ts'
import { operator, startMs } from './authority-setup.ts'
import { failed, parameters, rolloutNodes, setUpRollouts } from './rollouts-setup.ts'

test('a task for many nodes is planned, made a few at a time, and done when each has ended', async (t) => {
  const plane = await setUpRollouts(t)
  await plane.ask('POST', '/v1/nodes/gpu-005/quarantine', { reason: 'odd traffic' })
  const { effects } = await plane.plan()
  assert.deepEqual(
    effects.slice(1).map(({ subject, effect }: Json) => [subject, effect]),
    rolloutNodes.map((id) => [`node ${id}`, id === 'gpu-005' ? 'nothing: gpu-005' : 'gets the task']),
  )
  const id = await plane.begin({ concurrency: 2 })
  assert.deepEqual(await plane.tasks(id), [])
  await plane.goOn()
  await plane.goOn()
  assert.deepEqual((await plane.tasks(id)).map(({ node }) => node).toSorted(), ['gpu-001', 'gpu-002'])
  await plane.carryOut('gpu-001')
  await plane.goOn()
  assert.equal((await plane.rollout(id)).reached, 3)
  for (const node of ['gpu-002', 'gpu-003']) await plane.carryOut(node)
  await plane.goOn()
  await plane.carryOut('gpu-004')
  await plane.goOn()
  const done = await plane.rollout(id)
  assert.deepEqual([done.state, done.nodes, done.tasks.completed, done.failures], ['done', 4, 4, 0])
  assert.deepEqual((await plane.ask('GET', '/v1/rollouts')).rollouts.length, 1)
  const again = await plane.call('operator', 'POST', `/v1/rollouts/${id}/cancel`, {})
  assert.deepEqual([again.status, again.body.code], [409, 'ROLLOUT_ENDED'])
})

test('a rollout is held at its limit of failures, and resumed counts from there', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 1, failure_limit: 1 })
  await plane.goOn()
  await plane.carryOut('gpu-001', failed)
  await plane.goOn()
  await plane.goOn()
  const held = await plane.rollout(id)
  assert.deepEqual([held.state, held.reached, held.failures], ['held', 1, 1])
  assert.equal(held.why, '1 of 1 tasks have failed, and the limit is 1')
  assert.equal((await plane.ask('POST', `/v1/rollouts/${id}/resume`, {})).state, 'running')
  await plane.goOn()
  await plane.carryOut('gpu-002')
  await plane.goOn()
  await plane.carryOut('gpu-003', failed)
  await plane.goOn()
  assert.deepEqual([(await plane.rollout(id)).state, (await plane.rollout(id)).failures], ['held', 2])
})

test('a cancelled rollout makes no more tasks and ends those that wait', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 2 })
  await plane.goOn()
  await plane.dispatch('gpu-001')
  await plane.ask('POST', `/v1/rollouts/${id}/cancel`, { reason: 'wrong version' })
  await plane.goOn()
  await plane.goOn()
  const { state, why, tasks } = await plane.rollout(id)
  assert.deepEqual(
    [state, why, tasks.dispatched, tasks.cancelled, tasks.queued],
    ['cancelled', 'wrong version', 1, 1, 0],
  )
  const waited = (await plane.tasks(id)).find((task) => task['state'] === 'cancelled')
  assert.equal((await plane.show(waited?.id)).cancelled.why, 'its rollout was cancelled: wrong version')
})

test('a leader that died before it wrote down how far it was is followed by one that makes no task twice', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 3 })
  const before = await plane.store.get('task-rollout', id)
  assert.ok(before !== null)
  await plane.goOn()
  const after = await plane.store.get('task-rollout', id)
  assert.ok(after !== null)
  await plane.store.commit({
    reads: [{ row: 'task-rollout', key: id, version: after.version }],
    writes: [{ put: 'task-rollout', value: { ...before.value, concurrency: 5 } }],
    entries: [{ ...(await plane.story())[0], type: 'rollout.advanced' } as never],
  })
  await plane.goOn()
  const tasks = await plane.tasks(id)
  assert.deepEqual([tasks.length, new Set(tasks.map(({ node }) => node)).size], [3, 3])
  for (let turn = 0; turn < 2; turn++) await plane.goOn()
  assert.equal((await plane.tasks(id)).length, 5)
})

test('two leaders at once make each task once', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 5 })
  await Promise.all([plane.goOn(), plane.goOn(), plane.goOn()])
  const tasks = await plane.tasks(id)
  assert.deepEqual(tasks.map(({ node }) => node).toSorted(), rolloutNodes)
})

test('a node that may not take it any more when its turn comes counts as a failure', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 1, failure_limit: 1 })
  await plane.goOn()
  await plane.ask('POST', '/v1/nodes/gpu-002/quarantine', { reason: 'odd traffic' })
  await plane.carryOut('gpu-001')
  await plane.goOn()
  await plane.goOn()
  const { state, refused, failures } = await plane.rollout(id)
  assert.deepEqual([state, refused, failures], ['held', 1, 1])
})

test('a node for which too many tasks wait is refused with its reason, and keeps no other node waiting', async (t) => {
  const plane = await setUpRollouts(t)
  const full = { ...emptyLine('gpu-001'), queued: mostQueuedOfNode }
  await plane.store.commit({
    reads: [readOf('task-line', 'gpu-001', null)],
    writes: [{ put: 'task-line', value: full }],
    entries: [entry(operator, startMs, 'task.queued', { node: 'gpu-001', epoch: 1 })],
  })
  const id = await plane.begin({ concurrency: 1, failure_limit: 2 })
  await plane.goOn()
  await plane.goOn()
  const { state, reached, refused, last_refused: last, failures } = await plane.rollout(id)
  assert.deepEqual([state, reached, refused, failures], ['running', 2, 1, 1])
  assert.equal(last, 'gpu-001: 1000 tasks wait for gpu-001')
  await plane.carryOut('gpu-002', failed)
  await plane.goOn()
  const held = await plane.rollout(id)
  assert.deepEqual([held.state, held.reached], ['held', 2])
  assert.match(held.why, /limit is 2; refused last: gpu-001: 1000 tasks wait/)
})

test('every rollout goes on, however many older ones are held, and only so many may be open', async (t) => {
  const plane = await setUpRollouts(t)
  const last = await plane.begin({ concurrency: 1 })
  const row = await plane.store.get('task-rollout', last)
  assert.ok(row !== null)
  const held = { kind: 'held', atMs: startMs, why: 'failures' } as const
  const older = (at: number) => ({ ...row.value, id: `older-${String(at).padStart(3, '0')}`, state: held })
  const hold = async (from: number, until: number) => {
    const parts = Array.from({ length: until - from }, (_, at) =>
      rolloutBegun(older(from + at), rolloutNodes, operator, startMs),
    )
    assert.notEqual(await plane.store.commit(mergeParts(parts) as unknown as Change), 'lost-race')
  }
  // Ids of plans begin with digits: these sort behind it.
  await hold(0, 150)
  const { id: plan } = await plane.plan({ concurrency: 1 })
  const behind = { ...row.value, id: 'the-last' }
  await plane.store.commit(rolloutBegun(behind, rolloutNodes, operator, startMs) as unknown as Change)
  await plane.goOn()
  assert.deepEqual(
    (await plane.tasks('the-last')).map(({ node }) => node),
    ['gpu-001'],
  )
  await plane.ask('POST', '/v1/rollouts/the-last/cancel', {})
  await plane.goOn()
  assert.equal((await plane.rollout('the-last')).tasks.cancelled, 1)
  await hold(150, mostOpenRollouts - 1)
  const refused = await plane.call('operator', 'POST', `/v1/plans/${plan}/apply`, {})
  assert.deepEqual([refused.status, refused.body.code], [409, 'ROLLOUTS_FULL'])
  await plane.ask('POST', `/v1/rollouts/${last}/cancel`, {})
  await plane.goOn()
  assert.equal((await plane.call('operator', 'POST', `/v1/plans/${plan}/apply`, {})).status, 200)
})

test('a rollout that waits because the queue of the domain is full says so, once, and goes on when there is room', async (t) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 2 })
  const crowded: Store = { ...plane.store, countQueuedTasks: async () => mostQueued }
  const tryOn = () => openRolloutUpkeep({ ...plane.core, store: crowded }).run(crowded)
  await tryOn()
  await tryOn()
  const waiting = await plane.rollout(id)
  assert.deepEqual([waiting.state, waiting.reached, waiting.refused], ['running', 0, 0])
  assert.match(waiting.why, /100000 tasks wait in this domain/)
  const query = { after: null, last: null, limit: 10, node: null, type: 'rollout.stalled' } as const
  assert.equal((await plane.store.journal.read(query)).length, 1)
  await plane.goOn()
  const { why, reached } = await plane.rollout(id)
  assert.deepEqual([why, reached], [null, 2])
})

/** What a step of the leader reads and writes, in calls of the store and bytes of rows. */
const stepCost = async (t: TestContext, nodes: number) => {
  const plane = await setUpRollouts(t)
  const id = await plane.begin({ concurrency: 2 })
  const row = await plane.store.get('task-rollout', id)
  assert.ok(row !== null)
  const padded = Array.from({ length: nodes }, (_, at) => rolloutNodes[at] ?? `none-${String(at).padStart(5, '0')}`)
  const other = `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`
  const begun = rolloutBegun({ ...row.value, id: other, nodes }, padded, operator, startMs)
  await plane.ask('POST', `/v1/rollouts/${id}/cancel`, {})
  await plane.goOn()
  assert.notEqual(await plane.store.commit(begun as unknown as Change), 'lost-race')
  const counted = { calls: 0, bytes: 0 }
  const count = <T>(value: T): T => {
    counted.calls++
    counted.bytes += JSON.stringify(value)?.length ?? 0
    return value
  }
  const { store } = plane
  const counting: Store = {
    ...store,
    get: async (kind, key) => count(await store.get(kind, key)),
    list: async (kind, query) => count(await store.list(kind, query)),
    countOpenAndFailed: async (rollout, most) => count(await store.countOpenAndFailed(rollout, most)),
    countTasksOf: async () => assert.fail('it counts every task of the rollout'),
    commit: (change, token) => store.commit(count(change), token),
  }
  const step = async () => openRolloutUpkeep({ ...plane.core, store: counting }).run(counting)
  await step()
  const made = { ...counted }
  await plane.carryOut('gpu-001')
  await step()
  return { made, later: { calls: counted.calls - made.calls, bytes: counted.bytes - made.bytes } }
}

test('a step of a rollout of 10,000 nodes reads and writes what one of 100 does', async (t) => {
  const [few, many] = [await stepCost(t, 100), await stepCost(t, 10_000)]
  for (const step of ['made', 'later'] as const) {
    assert.equal(many[step].calls, few[step].calls)
    assert.ok(many[step].calls > 5)
    // Numbers of nodes are longer by some digits.
    assert.ok(Math.abs(many[step].bytes - few[step].bytes) < 100, `${many[step].bytes} and ${few[step].bytes}`)
  }
})

test('a list of rollouts counts the tasks of one after the other', async (t) => {
  const plane = await setUpRollouts(t)
  for (let begun = 0; begun < 3; begun++) {
    await plane.begin()
    plane.clock.advance(1)
  }
  let [underWay, most, counts] = [0, 0, 0]
  const counting: Store = {
    ...plane.store,
    countTasksOf: async (rollout) => {
      counts++
      most = Math.max(most, ++underWay)
      try {
        return await plane.store.countTasksOf(rollout)
      } finally {
        underWay--
      }
    },
  }
  const { rollouts } = (await listRollouts(counting, { limit: 100 })).body
  assert.deepEqual([rollouts.length, counts, most], [3, 3, 1])
})

test('bad input and a revoked key: refused with the field, and nothing goes on', async (t) => {
  const plane = await setUpRollouts(t)
  const refused = async (more: object) => {
    const action = { kind: 'create-tasks', select: { vcluster: 'training' }, type: 'service', parameters, ...more }
    const { status, body } = await plane.call('operator', 'POST', '/v1/plans', { action })
    return [status, body.code]
  }
  assert.deepEqual(await refused({ parameters: { name: 'dcgm' } }), [400, 'TASK_PARAMETERS_INVALID'])
  assert.deepEqual(await refused({ concurrency: 0 }), [400, 'REQUEST_INVALID'])
  assert.deepEqual(await refused({ select: { names: ['no-*'] } }), [404, 'NODES_NOT_FOUND'])
  const action = { kind: 'create-tasks', select: { vcluster: 'training' }, type: 'service', parameters }
  const { body: planned } = await plane.call('operator', 'POST', '/v1/plans', { action })
  await plane.ask('POST', `/v1/plans/${planned.id}/apply`, {})
  const { keys } = await plane.ask('GET', '/v1/keys')
  const { id: key } = keys.find(({ name }: Json) => name === 'the-operator')
  await plane.ask('POST', `/v1/keys/${key}/revoke`, {})
  await plane.goOn()
  const { state, why } = await plane.rollout(planned.id)
  assert.equal(state, 'cancelled')
  assert.match(why, /operator key that queued it was revoked/)
  assert.deepEqual(await plane.tasks(planned.id), [])
})
