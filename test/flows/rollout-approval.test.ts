// Who may begin a rollout over the operator API and a real store: the rights of the one who plans it and of the one who applies it, and
// a second operator where there are many runs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entry, readOf } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { applyPlan, type PlanParts } from '#plane/plans/apply-plan.ts'
import { openRolloutUpkeep } from '#plane/tasks/rollouts.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { operatorCall, type Json } from '../process/operator-call.ts'
import { operator, startMs } from './authority-setup.ts'
import { parameters, rolloutNodes, setUpRollouts } from './rollouts-setup.ts'

test('run on more nodes than allowed for one person is applied by another operator, whose key the first has not made', async (t) => {
  const plane = await setUpRollouts(t)
  await plane.ask('PATCH', '/v1/domain', { set: { 'tasks.run': true, 'tasks.approveRunAbove': 2 } })
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['run', 'service'] } })
  const run = { type: 'run', parameters: { name: 'firmware-check' } }
  const few = await plane.plan({ ...run, select: { names: ['gpu-001', 'gpu-002'] } })
  await plane.ask('POST', `/v1/plans/${few.id}/apply`, {})
  const { id, effects } = await plane.plan(run)
  assert.deepEqual(effects.at(-1), {
    ...{ subject: 'approval', effect: 'another operator has to apply this plan', loses: null, unrecoverable: null },
    facts: ['run on more than 2 nodes within an hour'],
  })
  const alone = await plane.call('platform-admin', 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([alone.status, alone.body.code], [403, 'SECOND_OPERATOR_REQUIRED'])
  const { secret } = await plane.ask('POST', '/v1/keys', { name: 'a-puppet', role: 'platform-admin' })
  const asPuppet = (path: string, body: object) => operatorCall(plane.listener.socket ?? '', secret, 'POST', path, body)
  const puppet = await asPuppet(`/v1/plans/${id}/apply`, {})
  assert.deepEqual([puppet.status, puppet.body.code], [403, 'SECOND_OPERATOR_REQUIRED'])
  assert.match(puppet.body.detail, /the-platform-admin and a-puppet one was made with the other/)
  const made = await asPuppet('/v1/keys', { name: 'of-the-puppet', role: 'operator' })
  const again = await operatorCall(plane.listener.socket ?? '', made.body.secret, 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([again.status, again.body.code], [403, 'SECOND_OPERATOR_REQUIRED'])
  const other = await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})
  assert.equal(other.status, 200)
  await plane.goOn()
  const [task] = await plane.tasks(id)
  assert.equal(task?.queued_by.name, 'the-platform-admin')
})

test('a plan is applied by one who may queue its tasks too: an operator has not the rights of the admin who planned it', async (t) => {
  const plane = await setUpRollouts(t)
  await plane.ask('POST', '/v1/nodes/gpu-002/unassign', {})
  const { id } = await plane.plan({ select: { names: ['gpu-*'] } })
  const refused = await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([refused.status, refused.body.code], [403, 'ROLE_FORBIDDEN'])
  assert.match(refused.body.detail, /gpu-002 .*needs? the role platform-admin/)
  assert.equal((await plane.call('platform-admin', 'POST', `/v1/plans/${id}/apply`, {})).status, 200)
})

test('a node that leaves its vCluster gets nothing of a rollout that an operator has applied for an admin', async (t) => {
  const plane = await setUpRollouts(t)
  const { id } = await plane.plan({ concurrency: 1, failure_limit: 3 })
  assert.equal((await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})).status, 200)
  await plane.ask('POST', '/v1/nodes/gpu-001/unassign', {})
  await plane.goOn()
  await plane.goOn()
  const { reached, refused, last_refused: last } = await plane.rollout(id)
  assert.deepEqual([reached, refused], [2, 1])
  assert.match(last, /^gpu-001: .*platform-admin/)
  assert.deepEqual(
    (await plane.tasks(id)).map(({ node }) => node),
    ['gpu-002'],
  )
})

test('a rollout ends with the key of the one who applied it, and what waits of it is cancelled', async (t) => {
  const plane = await setUpRollouts(t)
  const { id } = await plane.plan({ concurrency: 2 })
  assert.equal((await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})).status, 200)
  await plane.goOn()
  const { keys } = await plane.ask('GET', '/v1/keys')
  const { id: key } = keys.find(({ name }: Json) => name === 'the-operator')
  await plane.ask('POST', `/v1/keys/${key}/revoke`, {})
  await plane.goOn()
  await plane.goOn()
  const { state, why, tasks } = await plane.rollout(id)
  assert.deepEqual([state, why], ['cancelled', 'the operator key that applied it was revoked: the-operator'])
  assert.deepEqual([tasks.queued, tasks.cancelled], [0, 2])
})

test('a key that is revoked while a task is made of the rollout that it applied makes none', async (t) => {
  const plane = await setUpRollouts(t)
  const { id } = await plane.plan({ concurrency: 1 })
  assert.equal((await plane.call('operator', 'POST', `/v1/plans/${id}/apply`, {})).status, 200)
  const { keys } = await plane.ask('GET', '/v1/keys')
  const { id: key } = keys.find(({ name }: Json) => name === 'the-operator')
  let revoked = false
  const store: Store = {
    ...plane.store,
    commit: async (change, token) => {
      if (!revoked && change.writes.some(({ put }) => put === 'task')) {
        revoked = true
        await plane.ask('POST', `/v1/keys/${key}/revoke`, {})
      }
      return plane.store.commit(change, token)
    },
  }
  await openRolloutUpkeep({ ...plane.core, store }).run(store)
  assert.ok(revoked)
  assert.deepEqual(await plane.tasks(id), [])
  assert.match((await plane.rollout(id)).last_refused, /^gpu-001: the operator key that applied it was revoked/)
})

test('a key that is revoked while it applies a plan begins no rollout', async (t) => {
  const plane = await setUpRollouts(t)
  const { id } = await plane.plan()
  const { keys } = await plane.ask('GET', '/v1/keys')
  const { id: key } = keys.find(({ name }: Json) => name === 'the-operator')
  let revoked = false
  const store: Store = {
    ...plane.store,
    commit: async (change, token) => {
      if (!revoked) {
        revoked = true
        await plane.ask('POST', `/v1/keys/${key}/revoke`, {})
      }
      return plane.store.commit(change, token)
    },
  }
  const applier = { by: { ...operator, actor: 'operator:the-operator' }, key }
  const done = await applyPlan({ ...plane.core, store }, plane as unknown as PlanParts, id, applier)
  assert.ok(isRefusal(done))
  assert.match(`${done.code}: ${done.detail}`, /OPERATOR_KEY_INVALID: the operator key that applied it was revoked/)
  assert.equal(await plane.store.get('task-rollout', id), null)
})

test('the operator who approves a run sees what would run, and the journal keeps it', async (t) => {
  const plane = await setUpRollouts(t)
  await plane.ask('PATCH', '/v1/domain', { set: { 'tasks.run': true, 'tasks.approveRunAbove': 2 } })
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['run'] } })
  const given = { name: 'firmware-check', arguments: ['--erase', 'slot-3'] }
  const more = { expires_in_ms: 7_200_000, concurrency: 4, failure_limit: 2 }
  const { id } = await plane.plan({ type: 'run', parameters: given, ...more })
  const { task, effects } = (await plane.call('operator', 'GET', `/v1/plans/${id}`)).body
  assert.deepEqual(task, { type: 'run', parameters: given, ...more })
  assert.deepEqual(effects[0], {
    ...{ subject: 'task', effect: `run ${JSON.stringify(given)}`, loses: null, unrecoverable: null },
    facts: ['each may wait 2 h for its node', '4 at once', 'the rest is held after 2 failures'],
  })
  const query = { after: null, last: 1, limit: 1, node: null, type: 'plan.computed' } as const
  const [said] = await plane.store.journal.read(query)
  assert.deepEqual(said?.entry.body, {
    ...{ plan: id, action: 'create-tasks', lines: effects.length, type: 'run', parameters: JSON.stringify(given) },
    ...{ life_ms: 7_200_000, concurrency: 4, failure_limit: 2 },
  })
})

test('a plan whose task is another one by now is not applied', async (t) => {
  const plane = await setUpRollouts(t)
  const { id } = await plane.plan()
  const row = await plane.store.get('plan', id)
  assert.ok(row?.value.action.kind === 'create-tasks')
  const other = { ...row.value, action: { ...row.value.action, parameters: { name: 'sshd', action: 'stop' } } }
  await plane.store.commit({
    reads: [readOf('plan', id, row)],
    writes: [{ put: 'plan', value: other }],
    entries: [entry(operator, startMs, 'plan.computed', {}, {})],
  })
  const { status, body } = await plane.call('platform-admin', 'POST', `/v1/plans/${id}/apply`, {})
  assert.deepEqual([status, body.code], [409, 'PLAN_STALE'])
  assert.match(body.detail, /task .*dcgm.*sshd/)
})

test('runs that one operator queues within an hour count together, one by one or as rollouts', async (t) => {
  const plane = await setUpRollouts(t)
  await plane.ask('PATCH', '/v1/domain', { set: { 'tasks.run': true, 'tasks.approveRunAbove': 2 } })
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['run', 'service'] } })
  const run = { type: 'run', parameters: { name: 'firmware-check' } }
  const queue = async (node: string, more: object = {}) =>
    (await plane.call('operator', 'POST', '/v1/tasks', { node, ...run, ...more })).body
  // At once: of those that have read the same count one commits.
  const codes = (await Promise.all(rolloutNodes.map((id) => queue(id, { idempotency_key: 'job' })))).map(
    ({ code = null }) => code,
  )
  assert.deepEqual(codes.toSorted(), [...Array.from({ length: 3 }, () => 'SECOND_OPERATOR_REQUIRED'), null, null])
  const queued = rolloutNodes[codes.indexOf(null)] ?? ''
  assert.equal((await queue(queued, { idempotency_key: 'job' })).state, 'queued', 'the same one again')
  assert.equal((await queue('gpu-001')).code, 'SECOND_OPERATOR_REQUIRED')
  const service = { type: 'service', parameters }
  assert.equal((await queue('gpu-001', service)).state, 'queued')

  const action = { kind: 'create-tasks', select: { names: ['gpu-001'] }, ...run }
  const planned = (await plane.call('operator', 'POST', '/v1/plans', { action })).body
  assert.equal(planned.effects.at(-1).subject, 'approval')
  const alone = await plane.call('operator', 'POST', `/v1/plans/${planned.id}/apply`, {})
  assert.equal(alone.body.code, 'SECOND_OPERATOR_REQUIRED')
  assert.equal((await plane.call('platform-admin', 'POST', `/v1/plans/${planned.id}/apply`, {})).status, 200)

  // A rollout that needs nobody else counts when it begins; a plan from before that is stale.
  const few = { ...run, select: { names: ['gpu-001', 'gpu-002'] } }
  const [first, second] = [await plane.plan(few), await plane.plan(few)]
  await plane.ask('POST', `/v1/plans/${first.id}/apply`, {})
  const late = await plane.call('platform-admin', 'POST', `/v1/plans/${second.id}/apply`, {})
  assert.equal(late.body.code, 'PLAN_STALE')

  plane.clock.advance(65 * 60_000)
  assert.equal((await queue('gpu-001')).state, 'queued')
})
