// Rollouts over the operator API and a real store: planned first, made a few at a time, held when too many fail, and gone on with by
// whichever replica leads.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import { operatorCall, type Json } from '../process/operator-call.ts'
import { completed, principalOf, setUpTasks } from './tasks-setup.ts'

const ids = ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004', 'gpu-005']
const failed = { ...completed, state: 'failed', code: 'FAILED', exit_code: 3 } as const
const parameters = { name: 'dcgm', action: 'restart' }

const setUp = async (t: TestContext) => {
  const plane = await setUpTasks(t, ...ids)
  const { store, core } = plane
  const plan = (more: object = {}): Promise<Json> =>
    plane.ask('POST', '/v1/plans', {
      action: { kind: 'create-tasks', select: { vcluster: 'training' }, type: 'service', parameters, ...more },
    })
  const begin = async (more: object = {}): Promise<string> => {
    const { id } = await plan(more)
    const { steps } = await plane.ask('POST', `/v1/plans/${id}/apply`, {})
    assert.deepEqual([steps.length, steps[0].subject, steps[0].done], [1, `rollout ${id}`, true])
    return id
  }
  return {
    ...plane,
    plan,
    begin,
    /** What a leader does in a second; each is one that has just begun to lead. */
    goOn: async () => openRolloutUpkeep(core).run(store),
    rollout: (id: string): Promise<Json> => plane.ask('GET', `/v1/rollouts/${id}`),
    tasks: async (id: string): Promise<Json[]> => (await plane.ask('GET', `/v1/tasks?rollout=${id}`)).tasks,
    carryOut: async (node: string, result: typeof completed | typeof failed = completed) => {
      const task = await plane.dispatch(node)
      assert.ok(task !== null, `${node} has no task`)
      await plane.answer(task.id, principalOf(node), result)
    },
  }
}

test('a task for many nodes is planned, made a few at a time, and done when each has ended', async (t) => {
  const plane = await setUp(t)
  await plane.ask('POST', '/v1/nodes/gpu-005/quarantine', { reason: 'odd traffic' })
  const { effects } = await plane.plan()
  assert.deepEqual(
    effects.map(({ subject, effect }: Json) => [subject, effect]),
    ids.map((id) => [`node ${id}`, id === 'gpu-005' ? 'nothing: gpu-005' : 'gets the task']),
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
  const plane = await setUp(t)
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
  const plane = await setUp(t)
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
  const plane = await setUp(t)
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
  const plane = await setUp(t)
  const id = await plane.begin({ concurrency: 5 })
  await Promise.all([plane.goOn(), plane.goOn(), plane.goOn()])
  const tasks = await plane.tasks(id)
  assert.deepEqual(tasks.map(({ node }) => node).toSorted(), ids)
})

test('a node that may not take it any more when its turn comes counts as a failure', async (t) => {
  const plane = await setUp(t)
  const id = await plane.begin({ concurrency: 1, failure_limit: 1 })
  await plane.goOn()
  await plane.ask('POST', '/v1/nodes/gpu-002/quarantine', { reason: 'odd traffic' })
  await plane.carryOut('gpu-001')
  await plane.goOn()
  await plane.goOn()
  const { state, refused, failures } = await plane.rollout(id)
  assert.deepEqual([state, refused, failures], ['held', 1, 1])
})

test('run on more nodes than allowed for one person is applied by another operator, whose key the first has not made', async (t) => {
  const plane = await setUp(t)
  await plane.ask('PATCH', '/v1/domain', { set: { 'tasks.run': true, 'tasks.approveRunAbove': 2 } })
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['run', 'service'] } })
  const run = { type: 'run', parameters: { name: 'firmware-check' } }
  const few = await plane.plan({ ...run, select: { names: ['gpu-001', 'gpu-002'] } })
  await plane.ask('POST', `/v1/plans/${few.id}/apply`, {})
  const { id, effects } = await plane.plan(run)
  assert.deepEqual(effects.at(-1), {
    ...{ subject: 'approval', effect: 'another operator has to apply this plan', loses: null, unrecoverable: null },
    facts: ['run on more than 2 nodes'],
  })
  const alone = await plane.call('platform-admin', 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([alone.status, alone.body.code], [403, 'SECOND_OPERATOR_REQUIRED'])
  const { secret } = await plane.ask('POST', '/v1/keys', { name: 'a-puppet', role: 'operator' })
  const puppet = await operatorCall(plane.listener.socket ?? '', secret, 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([puppet.status, puppet.body.code], [403, 'SECOND_OPERATOR_REQUIRED'])
  const other = await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})
  assert.equal(other.status, 200)
  await plane.goOn()
  const [task] = await plane.tasks(id)
  assert.equal(task?.queued_by.name, 'the-platform-admin')
})

test('bad input and a revoked key: refused with the field, and nothing goes on', async (t) => {
  const plane = await setUp(t)
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
