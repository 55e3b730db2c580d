// What one worker, and all workers of an issuer, may take of the queue: so much a minute, so many places, and as long as the certificate
// lasts.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { entry } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import type { Worker } from '#domain/workers/worker.ts'
import { openQueueLength } from '#plane/tasks/queue-length.ts'
import { openWorkerQueueLimit, workerTaskRoutes } from '#plane/workers/worker-task-routes.ts'
import { fleetRows, newRowsOf } from '../fakes/fleet-rows.ts'
import type { Json } from '../process/operator-call.ts'
import { operator } from './authority-setup.ts'
import { principalOf, setUpTasks } from './tasks-setup.ts'

const minute = 60_000

const setUp = async (t: TestContext) => {
  const plane = await setUpTasks(t, 'gpu-001', 'gpu-002')
  const { store, clock } = plane
  const issuerOf = async (name: string): Promise<void> => {
    const found = fleetRows.find(({ put }) => put === 'worker-issuer')
    assert(found?.put === 'worker-issuer')
    const value = { ...found.value, name, iss: `https://${name}.example`, types: ['service'], vclusters: ['training'] }
    const write = { put: 'worker-issuer', value } as const
    const entries = [entry(operator, clock.nowMs(), 'worker.issuer_added', {}, { name })] as const
    await store.commit({ reads: newRowsOf([write]), writes: [write], entries })
  }
  const workerOf = async (issuer: string, instance: string, lifeMs = 1000 * minute): Promise<Worker> => {
    const [found, from] = [fleetRows.find(({ put }) => put === 'worker'), await store.get('worker-issuer', issuer)]
    assert(found?.put === 'worker' && from !== null)
    const { iss, sub, createdAtMs: issuerSinceMs } = from.value
    const current = { ...found.value.current, serial: instance, notAfterMs: clock.nowMs() + lifeMs }
    const id = `${issuer}.${instance}`
    const value: Worker = { ...found.value, id, issuer, instance, iss, sub, issuerSinceMs, current, former: null }
    const write = { put: 'worker', value } as const
    const entries = [entry(operator, clock.nowMs(), 'worker.enrolled', {}, { worker: id })] as const
    await store.commit({ reads: newRowsOf([write]), writes: [write], entries })
    return value
  }
  const [route] = workerTaskRoutes(plane.core, {
    queueLength: openQueueLength(plane.core),
    queueLimit: openWorkerQueueLimit(clock, () => 1),
  })
  assert(route !== undefined)
  /** The code it was refused with, and its detail; or that it was queued. */
  const queue = async ({ id, issuer, current }: Worker, node: string): Promise<string> => {
    const credential = {
      by: 'certificate',
      issuer: current.issuer,
      serial: current.serial,
      spki: current.spki,
    } as const
    const principal = { kind: 'worker', id, issuer, credential, notAfterMs: 0, source: '192.0.2.9' } as const
    const body = { node, type: 'service', parameters: { name: 'dcgm', action: 'restart' } }
    const done = await route.handle({ principal, params: {}, query: {}, body, correlation: 'c', evidence: null })
    return isRefusal(done) ? `${done.code} ${done.detail ?? ''}` : 'queued'
  }
  const countQueued = async (worker: Worker, node: string, tries: number): Promise<readonly [number, string]> => {
    for (let queued = 0; queued < tries; queued++) {
      const outcome = await queue(worker, node)
      if (outcome !== 'queued') return [queued, outcome]
    }
    return [tries, 'queued']
  }
  return { ...plane, issuerOf, workerOf, queueAs: queue, countQueued }
}

test('a worker queues 120 tasks a minute and the workers of an issuer 600, also where they are refused', async (t) => {
  const plane = await setUp(t)
  await plane.issuerOf('east')
  const workers = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((pod) => plane.workerOf('east', pod)))
  const [first, ...others] = workers
  assert(first !== undefined)
  for (let at = 0; at < 120; at++) assert.match(await plane.queueAs(first, 'nobody'), /^NODE_NOT_FOUND/)
  assert.match(await plane.queueAs(first, 'nobody'), /^RATE_LIMITED this worker/)
  for (const worker of others.slice(0, 4))
    for (let at = 0; at < 120; at++) assert.match(await plane.queueAs(worker, 'nobody'), /^NODE_NOT_FOUND/)
  assert.match(await plane.queueAs(others[4] ?? first, 'nobody'), /^RATE_LIMITED the workers of east together/)
  plane.clock.advance(minute)
  assert.equal(await plane.queueAs(first, 'gpu-001'), 'queued')
})

test('a worker that loops fills a quarter of the queue of a node, and operators and other issuers still queue', async (t) => {
  const plane = await setUp(t)
  for (const issuer of ['east', 'west']) await plane.issuerOf(issuer)
  const loops = await plane.workerOf('east', 'a')
  const counts: number[] = []
  let last = ''
  while (!last.startsWith('TASK_QUEUE_FULL')) {
    const [queued, outcome] = await plane.countQueued(loops, 'gpu-001', 100)
    counts.push(queued)
    last = outcome
    plane.clock.advance(minute)
  }
  assert.deepEqual(counts, [100, 100, 50])
  assert.equal(last, 'TASK_QUEUE_FULL 250 tasks of workers of east wait for gpu-001')
  assert.deepEqual((await plane.line('gpu-001'))?.queuedOf, { east: 250 })
  assert.equal((await plane.store.countQueuedOfWorkers()).get('east.a'), 250)
  assert.equal(await plane.queueAs(loops, 'gpu-002'), 'queued')
  assert.equal(await plane.queueAs(await plane.workerOf('west', 'b'), 'gpu-001'), 'queued')
  const body = { node: 'gpu-001', type: 'service', parameters: { name: 'dcgm', action: 'restart' } }
  assert.equal((await plane.call('operator', 'POST', '/v1/tasks', body)).status, 201)
  assert.equal((await plane.dispatch('gpu-001'))?.queuedBy.kind, 'operator')
  assert.equal((await plane.dispatch('gpu-001'))?.queuedBy.id, 'east.a')
  assert.equal((await plane.line('gpu-001'))?.queuedOf['east'], 249)
})

test('an operator waits behind one task of a worker at most, and tasks of one queuer leave in their order', async (t) => {
  const plane = await setUp(t)
  for (const issuer of ['east', 'west']) await plane.issuerOf(issuer)
  const [east, west] = [await plane.workerOf('east', 'a'), await plane.workerOf('west', 'b')]
  const taken: (readonly [string, string])[] = []
  const open: string[] = []
  const take = async (): Promise<void> => {
    const task = await plane.dispatch('gpu-001')
    assert.ok(task !== null)
    taken.push([task.queuedBy.id, task.id])
    open.push(task.id)
  }
  const answer = (task: string | undefined) => plane.answer(task ?? '', principalOf('gpu-001'))
  const ofWorkers: string[] = []
  for (let at = 0; at < 6; at++) {
    assert.equal(await plane.queueAs(at % 3 === 2 ? west : east, 'gpu-001'), 'queued')
    plane.clock.advance(10)
    ofWorkers.push(at % 3 === 2 ? west.id : east.id)
  }
  for (let at = 0; at < 3; at++) await take()
  assert.equal(await plane.dispatch('gpu-001'), null, 'the last place is for operators')
  const first = await plane.queue('gpu-001')
  plane.clock.advance(10)
  const second = await plane.queue('gpu-001')
  await take()
  assert.equal(taken.at(-1)?.[1], first.id)
  for (let at = 0; at < 2; at++) {
    await answer(open.shift())
    await take()
  }
  assert.equal(taken.at(-1)?.[1], second.id)
  while (taken.length < 8) {
    await answer(open.shift())
    await take()
  }
  const kinds = taken.map(([queuer]) => queuer)
  const operator = first.queued_by.id
  const [one, two, three, four, five, six] = ofWorkers
  assert.deepEqual(kinds, [one, two, three, operator, four, operator, five, six])
  for (const queuer of new Set(kinds)) {
    const listed = await plane.store.list('task', { order: 'sort_key', after: null, limit: 100 })
    const queued = listed.filter(({ value }) => value.queuedBy.id === queuer).map(({ value }) => value.id)
    assert.deepEqual(
      taken.flatMap(([of, id]) => (of === queuer ? [id] : [])),
      queued,
    )
  }
})

test('what a worker queued ends with its certificate, and that of a worker with a later one goes out', async (t) => {
  const plane = await setUp(t)
  await plane.issuerOf('east')
  const [short, long] = [await plane.workerOf('east', 'a', 20 * minute), await plane.workerOf('east', 'b')]
  for (const node of ['gpu-001', 'gpu-002']) assert.equal(await plane.queueAs(short, node), 'queued')
  plane.clock.advance(10)
  assert.equal(await plane.queueAs(long, 'gpu-001'), 'queued')
  const { tasks } = await plane.ask('GET', '/v1/tasks')
  const ofShort: readonly string[] = tasks.flatMap(({ id, queued_by: by }: Json) => (by.id === short.id ? [id] : []))
  assert.equal(ofShort.length, 2)
  plane.clock.advance(20 * minute - 11)
  await plane.sweep()
  for (const id of ofShort) assert.equal((await plane.show(id)).state, 'queued')
  plane.clock.advance(1)
  assert.equal(await plane.dispatch('gpu-002'), null)
  await plane.sweep()
  const why = `the certificate of the worker that queued it has ended: ${short.id}`
  for (const id of ofShort) assert.equal((await plane.show(id)).cancelled?.why, why)
  assert.equal((await plane.dispatch('gpu-001'))?.queuedBy.id, long.id)
})
