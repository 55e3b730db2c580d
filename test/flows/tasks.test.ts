// Tasks at the plane, over the operator API and a real store: queued, dispatched once however many ask, answered once, and ended by the
// leader when nothing waits for them any more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slotOf } from '#domain/core/certificate.ts'
import { entry, readOf } from '#domain/core/change.ts'
import { emptyLine } from '#domain/tasks/task.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openTaskSweep } from '#plane/tasks/sweep-tasks.ts'
import { takeResult } from '#plane/tasks/take-result.ts'
import { operatorCall, type Json } from '../process/operator-call.ts'
import { someCertificate } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { completed, principalOf, setUpTasks, storeThatFails } from './tasks-setup.ts'

const hour = 3_600_000

test('a task is queued, dispatched and answered under one correlation, and its result is there for those who wait', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id, correlation, state } = await plane.queue('gpu-001')
  assert.equal(state, 'queued')
  const waiting = plane.ask('GET', `/v1/tasks/${id}?wait_ms=20000`)
  const task = await plane.dispatch('gpu-001')
  assert.equal(task?.id, id)
  assert.equal((await plane.answer(id, principalOf('gpu-001'))).kind, 'taken')
  const { state: ended, result, dispatched } = await waiting
  assert.deepEqual([ended, result.exit_code, result.output.head], ['completed', 0, 'done\n'])
  assert.deepEqual([dispatched.epoch, dispatched.counter], [1, 1])
  const { certificates } = await plane.ask('GET', '/v1/nodes/gpu-001')
  assert.deepEqual(
    [dispatched.fingerprint],
    certificates.map(({ fingerprint }: Json) => fingerprint),
  )
  const story = await plane.story()
  assert.deepEqual(
    story.map(({ type, node, correlation: told }) => [type, node, told === correlation]),
    ['task.queued', 'task.dispatched', 'task.completed'].map((type) => [type, 'gpu-001', true]),
  )
  const { entries } = await plane.ask('GET', `/v1/journal?node=gpu-001&correlation=${correlation}`)
  assert.equal(entries.length, 3)
  const { chain } = await plane.ask('GET', '/v1/nodes/gpu-001/explain')
  assert.deepEqual(
    chain.slice(-3).map(({ what }: Json) => what),
    [
      `task ${id} (service) was queued`,
      `task ${id} (service) was signed and sent to it, as number 1`,
      `task ${id} (service) is completed: exit code 0`,
    ],
  )
})

test('many callers at once dispatch each task once, and never more than four of a node', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  for (let count = 0; count < 6; count++) await plane.queue('gpu-001')
  const found = await Promise.all(Array.from({ length: 12 }, () => plane.dispatch('gpu-001')))
  const ids = found.flatMap((task) => (task === null ? [] : [task.id]))
  assert.deepEqual([ids.length, new Set(ids).size], [4, 4])
  assert.deepEqual(await plane.line('gpu-001'), {
    ...emptyLine('gpu-001'),
    counter: 4,
    queued: 2,
    dispatched: 4,
    lastOf: 'operator',
  })
  await plane.answer(ids[0] ?? '', principalOf('gpu-001'))
  assert.notEqual(await plane.dispatch('gpu-001'), null)
  assert.equal(await plane.dispatch('gpu-001'), null)
})

test('an idempotency key makes a repeated request the same task, of the same caller and node', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const key = { idempotency_key: 'change-4711' }
  const tasks = await Promise.all([1, 2, 3].map(() => plane.queue('gpu-001', key)))
  assert.equal(new Set(tasks.map(({ id }) => id)).size, 1)
  assert.equal((await plane.line('gpu-001'))?.queued, 1)
  assert.notEqual((await plane.queue('gpu-002', key)).id, tasks[0].id)
  const body = { node: 'gpu-001', type: 'service', parameters: { name: 'dcgm', action: 'restart' }, ...key }
  const other = await plane.call('operator', 'POST', '/v1/tasks', body)
  assert.deepEqual([other.status, other.body.id === tasks[0].id], [201, false])
  const changed = { ...body, parameters: { name: 'dcgm', action: 'stop' } }
  const conflict = await plane.call('operator', 'POST', '/v1/tasks', changed)
  assert.deepEqual([conflict.status, conflict.body.code], [409, 'IDEMPOTENCY_CONFLICT'])
  assert.match(conflict.body.next, new RegExp(`muster task show ${other.body.id}$`))
})

test('a task for a node that is connected and takes no tasks says so, until its agent takes them', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const session = { number: 7, sinceMs: startMs, serial: 'c-gpu-001' }
  plane.sessions.set('gpu-001', [{ ...session, takesTasks: false }])
  const { id, waits_because: why } = await plane.queue('gpu-001')
  assert.match(why, /^gpu-001 is connected and takes no tasks: it has no helper, /)
  assert.equal((await plane.show(id)).waits_because, why)
  assert.equal((await plane.ask('GET', '/v1/nodes/gpu-001')).takes_tasks, false)
  plane.sessions.set('gpu-001', [{ ...session, takesTasks: true }])
  assert.equal('waits_because' in (await plane.show(id)), false)
  assert.equal((await plane.ask('GET', '/v1/nodes/gpu-001')).takes_tasks, true)
  plane.sessions.set('gpu-001', [session])
  assert.equal('takes_tasks' in (await plane.ask('GET', '/v1/nodes/gpu-001')), false)
})

test('bad input is refused with a code and the field, and nothing is queued', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const refused = async (body: object, role: 'operator' | 'viewer' = 'operator') => {
    const reply = await plane.call(role, 'POST', '/v1/tasks', { node: 'gpu-001', type: 'service', ...body })
    return [reply.status, reply.body.code, reply.body.field ?? null]
  }
  const parameters = { name: 'dcgm', action: 'restart' }
  assert.deepEqual(await refused({ parameters: { name: 'dcgm' } }), [400, 'TASK_PARAMETERS_INVALID', 'parameters'])
  const unknown = { ...parameters, action: 'explode' }
  assert.deepEqual(await refused({ parameters: unknown }), [400, 'TASK_PARAMETERS_INVALID', 'parameters.action'])
  const words = async (asked: object) =>
    (await plane.call('operator', 'POST', '/v1/tasks', { node: 'gpu-001', ...asked })).body.detail
  assert.match(await words({ type: 'service', parameters: unknown }), /parameters\.action must be one of start, stop, /)
  const short = { type: 'fetch-file', parameters: { sha256: 'ab', path: '/etc/x' } }
  assert.match(await words(short), /^parameters\.sha256 must match/)
  const long = { type: 'x-led', parameters: { text: 'x'.repeat(17_000) } }
  assert.deepEqual(await refused(long), [400, 'TASK_PARAMETERS_INVALID', 'parameters'])
  assert.deepEqual(await refused({ type: 'cleanup', parameters: { name: 'logs' } }), [
    403,
    'TASK_TYPE_NOT_ALLOWED',
    'type',
  ])
  assert.deepEqual(await refused({ type: 'run', parameters: { name: 'x' } }), [403, 'TASK_TYPE_NOT_ALLOWED', 'type'])
  assert.deepEqual(await refused({ node: 'gpu-404', parameters }), [404, 'NODE_NOT_FOUND', null])
  assert.deepEqual(await refused({ parameters, expires_in_ms: 25 * hour }), [400, 'REQUEST_INVALID', 'expires_in_ms'])
  assert.deepEqual(await refused({ parameters, shell: 'rm' }), [400, 'REQUEST_INVALID', 'shell'])
  assert.deepEqual(await refused({ parameters }, 'viewer'), [403, 'ROLE_FORBIDDEN', null])
  assert.equal((await plane.ask('GET', '/v1/tasks')).tasks.length, 0)
})

test('a lost answer to a result is repeated, and another result is refused', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  const answers = await Promise.all([1, 2, 3].map(() => plane.answer(id, principalOf('gpu-001'))))
  assert.deepEqual(
    answers.map(({ kind }) => kind),
    ['taken', 'taken', 'taken'],
  )
  const other = await plane.answer(id, principalOf('gpu-001'), { ...completed, exit_code: 1 })
  assert.equal(other.kind === 'refused' && other.code, 'TASK_ALREADY_ENDED')
  assert.equal((await plane.story()).filter(({ type }) => type === 'task.completed').length, 1)
  assert.deepEqual(await plane.line('gpu-001'), { ...emptyLine('gpu-001'), counter: 1, lastOf: 'operator' })
})

test('secrets of the plane that a program has printed are not kept', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  const secret = `enroll_${'s'.repeat(43)}`
  const output = { head: `join with ${secret}\n`, tail: '', bytes: 100 }
  await plane.answer(id, principalOf('gpu-001'), { ...completed, output, detail: secret })
  assert.doesNotMatch(JSON.stringify(await plane.show(id)), /sssss/)
})

test('secrets in what a host has collected as evidence are not kept either', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  const secret = `muster_key_${'k'.repeat(43)}`
  const evidence = { removed: ['/var/crash/1', `/var/crash/${secret}`], [secret]: 1, env: { pem: `a\n${secret}` } }
  assert.equal((await plane.answer(id, principalOf('gpu-001'), { ...completed, evidence })).kind, 'taken')
  const { result } = await plane.show(id)
  assert.deepEqual(result.evidence, {
    ...{ removed: ['/var/crash/1', '/var/crash/[secret]'], '[secret]': 1 },
    env: { pem: 'a\n[secret]' },
  })
})

test('a quarantine that is committed while a result is decided wins: the result counts for nothing', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  let quarantined = false
  const store = new Proxy(plane.store, {
    get(from, name) {
      if (name !== 'commit' || quarantined) return Reflect.get(from, name)
      return async (...change: Parameters<Store['commit']>) => {
        quarantined = true
        await plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd traffic' })
        return from.commit(...change)
      }
    },
  })
  const given = { principal: principalOf('gpu-001'), task: id, body: completed, correlation: 'call' }
  const answered = await takeResult({ ...plane.core, store }, given)
  assert.deepEqual([answered.kind, quarantined], ['refused', true])
  await plane.sweep()
  assert.equal((await plane.show(id)).state, 'unknown')
})

test('T30: a stale process of a replaced machine takes and finishes nothing', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const before = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  const waiting = await plane.queue('gpu-001')
  const node = await plane.store.get('node', 'gpu-001')
  assert(node !== null && node.value.membership.kind === 'active')
  const slots = { ...node.value.membership.slots, current: slotOf(someCertificate('replaced', { spki: 'other' })) }
  await plane.store.commit({
    reads: [readOf('node', 'gpu-001', node)],
    writes: [{ put: 'node', value: { ...node.value, epoch: 2, membership: { ...node.value.membership, slots } } }],
    entries: [entry(operator, startMs, 'host.enrolled', { node: 'gpu-001', epoch: 2 })],
  })
  const stale = principalOf('gpu-001', 1)
  assert.equal(await plane.dispatch('gpu-001', stale), null)
  const answered = await plane.answer(before.id, stale)
  assert.equal(answered.kind, 'refused')
  const replacing = {
    ...principalOf('gpu-001', 2),
    credential: { ...stale.credential, serial: 'replaced', spki: 'other' },
  }
  const finished = await plane.answer(before.id, replacing)
  assert.equal(finished.kind, 'refused')
  assert.equal(await plane.dispatch('gpu-001', replacing), null)
  assert.equal((await plane.show(waiting.id)).cancelled.why, 'its node is in epoch 2 by now')
  await plane.sweep()
  const given = await plane.show(before.id)
  assert.deepEqual([given.state, given.code], ['unknown', 'NO_ANSWER'])
})

test('a halt stops dispatch at once, and what waited goes out when it is over', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.ask('POST', '/v1/issuance/halt', { reason: 'audit' })
  assert.equal(await plane.dispatch('gpu-001'), null)
  assert.equal((await plane.show(id)).state, 'queued')
  await plane.ask('POST', '/v1/issuance/resume', {})
  assert.equal((await plane.dispatch('gpu-001'))?.id, id)
})

test('a quarantine, a revoked key and a changed policy end what waits', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002', 'gpu-003')
  const { keys } = await plane.ask('GET', '/v1/keys')
  const { id: key } = keys.find(({ name }: Json) => name === 'the-operator')
  const stranded = await plane.queue('gpu-001')
  const parameters = { name: 'dcgm', action: 'restart' }
  const { body: orphan } = await plane.call('operator', 'POST', '/v1/tasks', {
    node: 'gpu-002',
    type: 'service',
    parameters,
  })
  await plane.sweep()
  assert.equal((await plane.show(orphan.id)).state, 'queued')
  await plane.ask('POST', `/v1/keys/${key}/revoke`, {})
  await plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd traffic' })
  await plane.sweep()
  assert.equal((await plane.show(stranded.id)).cancelled.why, 'its node was quarantined')
  assert.match((await plane.show(orphan.id)).cancelled.why, /operator key .* was revoked: the-operator/)
  const forbidden = await plane.queue('gpu-003')
  await plane.ask('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': [] } })
  assert.equal(await plane.dispatch('gpu-003'), null)
  assert.match((await plane.show(forbidden.id)).cancelled.why, /not allowed any more/)
})

test('what a key queued ends when that key expires, and cannot be dispatched before the leader has seen it', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const made = await plane.ask('POST', '/v1/keys', { name: 'ci', role: 'operator', expires_ms: hour })
  const queue = async (node: string): Promise<Json> => {
    const body = { node, type: 'service', parameters: { name: 'dcgm', action: 'restart' }, expires_in_ms: 3 * hour }
    const { status, body: task } = await operatorCall(
      plane.listener.socket ?? '',
      made.secret,
      'POST',
      '/v1/tasks',
      body,
    )
    assert.equal(status, 201, JSON.stringify(task))
    return task
  }
  const [one, other] = [await queue('gpu-001'), await queue('gpu-002')]
  plane.clock.advance(hour - 1)
  await plane.sweep()
  assert.deepEqual([(await plane.show(one.id)).state, (await plane.show(other.id)).state], ['queued', 'queued'])
  plane.clock.advance(1)
  assert.equal(await plane.dispatch('gpu-001'), null)
  await plane.sweep()
  for (const { id } of [one, other])
    assert.equal((await plane.show(id)).cancelled?.why, 'the operator key that queued it has expired: ci')
})

test('the leader expires what waited too long, gives up on what was not answered, and removes it after a week', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const short = await plane.queue('gpu-001', { expires_in_ms: 60_000 })
  const sent = await plane.queue('gpu-002', { expires_in_ms: 60_000 })
  await plane.dispatch('gpu-002')
  await plane.sweep()
  assert.equal((await plane.show(short.id)).state, 'queued')
  plane.clock.advance(60_000)
  await plane.sweep()
  assert.deepEqual([(await plane.show(short.id)).state, (await plane.show(sent.id)).state], ['expired', 'dispatched'])
  assert.equal(await plane.dispatch('gpu-001'), null)
  plane.clock.advance(15 * 60_000)
  await plane.sweep()
  assert.equal((await plane.show(sent.id)).state, 'unknown')
  const late = await plane.answer(sent.id, principalOf('gpu-002'))
  assert.equal(late.kind === 'taken' && late.task.state.kind, 'completed')
  await plane.store.forget(plane.clock.nowMs() + 6 * 24 * hour)
  assert.equal((await plane.ask('GET', '/v1/tasks')).tasks.length, 2)
  await plane.store.forget(plane.clock.nowMs() + 8 * 24 * hour)
  assert.equal((await plane.ask('GET', '/v1/tasks')).tasks.length, 0)
})

test('a round of the sweep that the database fails drops nothing: the next one ends what is over', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const ids = [(await plane.queue('gpu-001')).id, (await plane.queue('gpu-002')).id]
  const states = async () => (await Promise.all(ids.map(plane.show))).map(({ state }) => state)
  const sweep = openTaskSweep(plane.core)
  await sweep.run(plane.store)
  assert.deepEqual(await states(), ['queued', 'queued'])
  for (const node of ['gpu-001', 'gpu-002'])
    await plane.ask('POST', `/v1/nodes/${node}/quarantine`, { reason: 'odd traffic' })
  const isFirst = (kind: unknown, key: unknown) => kind === 'node' && key === 'gpu-001'
  const failing = storeThatFails(plane.store, { method: 'get', when: 'before', on: isFirst })
  await assert.rejects(async () => sweep.run(failing))
  assert.deepEqual(await states(), ['queued', 'cancelled'], 'one that fails keeps no other waiting')
  await sweep.run(plane.store)
  assert.deepEqual(await states(), ['cancelled', 'cancelled'])
})

test('a step of one task has the leader look at no other task of its node', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  for (let count = 0; count < 6; count++) await plane.queue('gpu-001')
  const sweep = openTaskSweep(plane.core)
  await sweep.run(plane.store)
  let reads = 0
  const counting = new Proxy(plane.store, {
    get(from, name) {
      const found: unknown = Reflect.get(from, name)
      if (typeof found !== 'function') return found
      return (...args: unknown[]): unknown => {
        if (args[0] === 'task' && (name === 'get' || 'waits_for' in ((args[1] as Json).where ?? {}))) reads += 1
        return Reflect.apply(found, from, args)
      }
    },
  })
  await plane.queue('gpu-001')
  const task = await plane.dispatch('gpu-001')
  await plane.answer(task?.id ?? '', principalOf('gpu-001'))
  await sweep.run(counting)
  assert.equal(reads, 0)
  await plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd traffic' })
  await sweep.run(counting)
  const { tasks } = await plane.ask('GET', '/v1/tasks?state=cancelled')
  assert.equal(tasks.length, 6)
})

test('a task that is queued while the leader finds none of its node is found when the node ends', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const sweep = openTaskSweep(plane.core)
  const { id: first } = await plane.queue('gpu-001')
  await plane.ask('POST', `/v1/tasks/${first}/cancel`, {})
  let id = ''
  const queuesOne = new Proxy(plane.store, {
    get(from, name) {
      const found: unknown = Reflect.get(from, name)
      if (typeof found !== 'function') return found
      return async (...args: unknown[]): Promise<unknown> => {
        const answer: unknown = await Reflect.apply(found, from, args)
        const isLook = name === 'list' && 'waits_for' in ((args[1] as Json).where ?? {})
        if (isLook && id === '') id = (await plane.queue('gpu-001')).id
        return answer
      }
    },
  })
  await sweep.run(queuesOne)
  assert.notEqual(id, '')
  await sweep.run(plane.store)
  await plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd traffic' })
  await sweep.run(plane.store)
  assert.equal((await plane.show(id)).state, 'cancelled')
})

test('what waited when this replica began to lead is found though the first look fails', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd traffic' })
  const sweep = openTaskSweep(plane.core)
  const isLook = (_kind: unknown, query: unknown) => (query as { order?: string }).order === 'waits_for'
  const failing = storeThatFails(plane.store, { method: 'list', when: 'before', on: isLook })
  await assert.rejects(async () => sweep.run(failing))
  await sweep.run(plane.store)
  assert.equal((await plane.show(id)).state, 'cancelled')
})

test('tasks are listed oldest first and page by page, by node, state and type', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const ids: string[] = []
  for (const [at, node] of ['gpu-001', 'gpu-002', 'gpu-001', 'gpu-001'].entries()) {
    plane.clock.advance(1)
    ids.push((await plane.queue(node, { idempotency_key: `key-${at}` })).id)
  }
  await plane.ask('POST', `/v1/tasks/${ids[2]}/cancel`, { reason: 'not now' })
  const listed = async (query: string): Promise<string[]> =>
    (await plane.ask('GET', `/v1/tasks${query}`)).tasks.map(({ id }: Json) => id)
  assert.deepEqual(await listed(''), ids)
  const first = await plane.ask('GET', '/v1/tasks?limit=3')
  assert.deepEqual(await listed(`?limit=3&after=${encodeURIComponent(first.next)}`), ids.slice(3))
  assert.deepEqual(await listed('?node=gpu-001&state=queued'), [ids[0], ids[3]])
  assert.deepEqual(await listed('?state=cancelled&type=service'), [ids[2]])
  assert.deepEqual(await listed('?type=cleanup'), [])
  const nowhere = await plane.call('viewer', 'GET', '/v1/tasks?node=gpu-404')
  assert.deepEqual([nowhere.status, nowhere.body.code], [404, 'NODE_NOT_FOUND'])
})

test('a node that is quarantined while its task is dispatched wins the race', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  const [task] = await Promise.all([
    plane.dispatch('gpu-001'),
    plane.ask('POST', '/v1/nodes/gpu-001/quarantine', { reason: 'odd' }),
  ])
  const order = (await plane.store.journal.read({ after: null, last: null, limit: 1000, node: 'gpu-001', type: null }))
    .map(({ entry: { type } }) => type)
    .filter((type) => type === 'task.dispatched' || type === 'node.quarantined')
  const expected = task === null ? ['node.quarantined'] : ['task.dispatched', 'node.quarantined']
  assert.deepEqual(order, expected)
  await plane.sweep()
  assert.equal((await plane.show(id)).state, task === null ? 'cancelled' : 'unknown')
})
