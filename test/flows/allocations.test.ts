// Work on nodes, over the operator API and a real store: placed, asked back, given back, and taken with the identity.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Check } from 'typebox/value'
import { slotOf } from '#domain/core/certificate.ts'
import { readOf, entry } from '#domain/core/change.ts'
import { decideDuplicate } from '#domain/identity/duplicate.ts'
import type { Node } from '#domain/core/node.ts'
import { giveBackAllocation, placeAllocation } from '#plane/fleet/allocation-routes.ts'
import { changeNode } from '#plane/node/operator-node-actions.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { AllocationListAnswer, AllocationView } from '#wire/fleet/allocation-api.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { noHolders } from '../fakes/no-holders.ts'
import { holder } from '../fakes/sample-rows.ts'
import type { Json } from '../process/operator-call.ts'
import { putNode, someCertificate } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

type World = OperatorSetup & {
  ask(method: string, path: string, body?: object): Promise<Json>
  node(id: string): Promise<Node>
  place(id: string, node?: string): Promise<Json>
  /** Of allocations, oldest first: type, allocation and the commit they came in. */
  outbox(node: string): Promise<{ type: string; id: string; commit: string; body: Json }[]>
}

/** Nodes in vCluster `training`, each with a certificate in use. */
const setUp = async (t: TestContext, ...ids: string[]): Promise<World> => {
  const plane = await setUpOperatorServer(t)
  const { store } = plane
  for (const id of ids) {
    const slots = {
      current: slotOf(someCertificate(`c-${id}`, { spki: `key-of-${id}` })),
      pending: null,
      retired: null,
    }
    const active: Partial<Node> = { membership: { kind: 'active', sinceMs: startMs, slots }, epoch: 1 }
    await store.commit({
      reads: [readOf('node', id, null)],
      writes: [putNode(id, { ...active, assignment: 'training', profile: 'gpu-cloud' })],
      entries: [entry(operator, startMs, 'node.confirmed', { node: id, epoch: 1 })],
    })
  }
  const ask: World['ask'] = async (method, path, body) => {
    const reply = await plane.call('platform-admin', method, path, body)
    assert.ok(reply.status < 300, `${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  return {
    ...plane,
    ask,
    async node(id) {
      const row = await store.get('node', id)
      assert.ok(row !== null)
      return row.value
    },
    place: (id, node = ids[0] ?? '') =>
      ask('POST', '/v1/allocations', { id, node, vcluster: 'training', owner: 'slurm' }),
    async outbox(node) {
      const entries = await store.journal.read({ node, type: null, after: null, last: null, limit: 1000 })
      return entries
        .filter(({ entry: { type } }) => type.startsWith('allocation.'))
        .map(({ entry: { type, body, operation } }) => ({
          ...{ type, id: String(body['allocation']), body: body as Json },
          commit: operation.replace(/-\d+$/, ''),
        }))
    },
  }
}

test('an allocation is created once, listed, shown and released', async (t) => {
  const world = await setUp(t, 'gpu-001', 'gpu-002')
  const body = { id: 'job-1', node: 'gpu-001', vcluster: 'training', owner: 'slurm' }
  const first = await world.call('operator', 'POST', '/v1/allocations', body)
  const again = await world.call('operator', 'POST', '/v1/allocations', body)
  assert.deepEqual([first.status, again.status], [201, 200])
  assert.deepEqual(again.body, first.body)
  assert.ok(Check(AllocationView, first.body))
  const other = await world.call('operator', 'POST', '/v1/allocations', { ...body, owner: 'kueue' })
  assert.deepEqual([other.status, other.body.code], [409, 'NODE_STATE_CONFLICT'])
  assert.equal((await world.call('viewer', 'POST', '/v1/allocations', body)).status, 403)
  await world.place('job-2', 'gpu-002')

  const listed = async (query: string) => {
    const answered = await world.ask('GET', `/v1/allocations?${query}`)
    assert.ok(Check(AllocationListAnswer, answered))
    return answered.allocations.map(({ id }) => id)
  }
  assert.deepEqual(await listed(''), ['job-1', 'job-2'])
  assert.deepEqual(await listed('node=gpu-002'), ['job-2'])
  const unknown = await world.call('viewer', 'GET', '/v1/allocations?vcluster=other')
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'VCLUSTER_NOT_FOUND'])
  assert.equal((await world.ask('GET', '/v1/allocations?limit=1')).next, 'job-1')
  assert.deepEqual(await listed('limit=1&after=job-1'), ['job-2'])

  const released = await world.ask('POST', '/v1/allocations/job-1/release', { reason: 'finished' })
  assert.deepEqual([released.state, released.why, released.forced], ['released', 'finished', false])
  assert.deepEqual(await world.ask('POST', '/v1/allocations/job-1/release', {}), released)
  assert.deepEqual(await world.ask('GET', '/v1/allocations/job-1'), released)
  assert.deepEqual(await listed(''), ['job-2'])
  assert.deepEqual(await listed('state=all'), ['job-1', 'job-2'])
  assert.equal((await world.node('gpu-001')).allocations, 0)
  const missing = await world.call('viewer', 'GET', '/v1/allocations/job-9')
  assert.deepEqual([missing.status, missing.body.code], [404, 'ALLOCATION_NOT_FOUND'])
})

test('nothing is placed on an unhealthy node; its reasons are listed, and health lets work in again', async (t) => {
  const world = await setUp(t, 'gpu-001', 'gpu-002')
  const sick = { state: 'unhealthy', reason: 'xid 79', evidence: { gpu: 3 } }
  assert.equal((await world.call('viewer', 'POST', '/v1/nodes/gpu-001/health', sick)).status, 403)
  const reported = await world.ask('POST', '/v1/nodes/gpu-001/health', sick)
  assert.deepEqual(reported.scheduling, { state: 'unavailable', reasons: ['unhealthy'] })
  assert.deepEqual(await world.ask('POST', '/v1/nodes/gpu-001/health', sick), reported)
  const raised = await world.journal('node.condition_raised')
  assert.equal(raised.length, 1)

  const names = async (query: string) => (await world.ask('GET', `/v1/nodes?${query}`)).nodes.map(({ id }: Json) => id)
  assert.deepEqual([await names('schedulable=yes'), await names('schedulable=no')], [['gpu-002'], ['gpu-001']])
  const body = { id: 'job-1', node: 'gpu-001', vcluster: 'training', owner: 'slurm' }
  const refused = await world.call('operator', 'POST', '/v1/allocations', body)
  assert.deepEqual([refused.status, refused.body.code], [409, 'NODE_NOT_SCHEDULABLE'])
  assert.equal(refused.body.detail, 'gpu-001: unhealthy')
  assert.equal((await world.call('operator', 'POST', '/v1/nodes/gpu-001/health', { state: 'unhealthy' })).status, 400)

  const well = await world.ask('POST', '/v1/nodes/gpu-001/health', { state: 'healthy' })
  assert.equal(well.scheduling.state, 'schedulable')
  await world.place('job-1')
})

test('a drain asks for everything in one commit, ends with the last release, and undrain takes it back', async (t) => {
  const world = await setUp(t, 'gpu-001')
  await world.place('job-1')
  await world.place('job-2')
  const drained = await world.ask('POST', '/v1/nodes/gpu-001/drain', {})
  assert.deepEqual(drained.scheduling, { state: 'draining', reasons: ['draining'] })
  const asked = (await world.outbox('gpu-001')).slice(2)
  assert.deepEqual(
    asked.map(({ type, id }) => [type, id]),
    ['job-1', 'job-2'].map((id) => ['allocation.release_requested', id]),
  )
  assert.equal(new Set(asked.map(({ commit }) => commit)).size, 1)
  const done = await world.call('operator', 'POST', '/v1/nodes/gpu-001/drain', { done: true })
  assert.deepEqual([done.status, done.body.code], [409, 'NODE_STATE_CONFLICT'])
  assert.match(done.body.detail, /^2 allocations are still on gpu-001, among them job-1, job-2/)

  await world.ask('POST', '/v1/nodes/gpu-001/undrain', {})
  assert.deepEqual(
    (await world.outbox('gpu-001')).slice(4).map(({ type }) => type),
    ['allocation.release_withdrawn', 'allocation.release_withdrawn'],
  )
  assert.equal((await world.ask('GET', '/v1/allocations/job-1')).state, 'running')

  await world.ask('POST', '/v1/nodes/gpu-001/drain', {})
  await world.ask('POST', '/v1/allocations/job-1/release', {})
  assert.equal((await world.node('gpu-001')).drain, 'draining')
  await world.ask('POST', '/v1/allocations/job-2/release', {})
  assert.equal((await world.node('gpu-001')).drain, 'drained')
  assert.equal((await world.journal('node.drained')).length, 1)
})

test('quarantine, revocation, decommission and repair take what ran from its owners, in the same commit', async (t) => {
  const ways = [
    ['gpu-q', 'quarantine', { reason: 'odd' }, 'node.quarantined', 'its node was quarantined: odd'],
    ['gpu-r', 'revoke', { reason: 'stolen' }, 'host.revoked', 'its node was revoked: stolen'],
    ['gpu-d', 'decommission', { force: true }, 'host.revoked', 'its node was decommissioned'],
    [
      'gpu-b',
      'repair-bundle',
      { reason: 'stale' },
      'node.quarantined',
      'its node was quarantined: to be repaired: stale',
    ],
  ] as const
  const world = await setUp(t, ...ways.map(([id]) => id))
  for (const [id, action, body, type, why] of ways) {
    await world.place(`${id}-1`, id)
    await world.place(`${id}-2`, id)
    await world.ask('POST', `/v1/nodes/${id}/${action}`, body)
    const taken = (await world.outbox(id)).slice(2)
    assert.deepEqual(
      taken.map((one) => [one.type, one.body]),
      [1, 2].map((number) => [
        'allocation.released',
        { allocation: `${id}-${number}`, owner: 'slurm', vcluster: 'training', forced: true, why },
      ]),
    )
    const ended = (await world.journal(type)).find(({ node }) => node === id)
    assert.deepEqual([...new Set(taken.map(({ commit }) => commit))], [ended?.operation.replace(/-\d+$/, '')])
    assert.equal((await world.node(id)).allocations, 0)
    assert.deepEqual(await liveAllocations(world.store, id), [])
  }
})

test('decommission names what runs and what force would do, and needs it', async (t) => {
  const world = await setUp(t, 'gpu-001')
  world.sessions.set('gpu-001', [{ number: 7, sinceMs: startMs, serial: 'a1' }])
  await world.place('job-1')
  const refused = await world.call('platform-admin', 'POST', '/v1/nodes/gpu-001/decommission', {})
  assert.equal(refused.status, 409)
  assert.match(refused.body.detail, /is in use: 1 allocation running; .*--force/)
  assert.equal((await world.node('gpu-001')).membership.kind, 'active')
  await world.ask('POST', '/v1/nodes/gpu-001/drain', {})
  // A channel alone of a node that drains is no reason; its work is.
  const draining = await world.call('platform-admin', 'POST', '/v1/nodes/gpu-001/decommission', {})
  assert.equal(draining.status, 409)
  await world.ask('POST', '/v1/allocations/job-1/release', {})
  await world.ask('POST', '/v1/nodes/gpu-001/decommission', {})
  assert.equal((await world.node('gpu-001')).membership.kind, 'revoked')
})

test('two holders who are fenced lose the work with the identity', async (t) => {
  const world = await setUp(t, 'gpu-001')
  await world.place('job-1')
  const { store, feed, clock } = world
  const [node, domain, profile] = await Promise.all([
    store.get('node', 'gpu-001'),
    store.get('domain', 'domain'),
    store.get('profile', 'gpu-cloud'),
  ])
  assert.ok(node !== null && domain !== null && profile !== null)
  const two = { claimant: holder(1), otherHolder: null, lastSeen: null, claimantLive: false }
  const facts = { node, domain, profile, by: operator, nowMs: clock.nowMs() }
  const verdict = decideDuplicate({ ...facts, ...two, sign: 'old-counter' })
  assert.ok(verdict.kind === 'fenced')
  const secondHolders = openSecondHolders({ store, feed, clock }, noHolders)
  const settled = await secondHolders.settle('gpu-001', verdict)
  assert.ok(isRefusal(settled) && settled.code === 'DUPLICATE_IDENTITY')
  const [, taken] = await world.outbox('gpu-001')
  assert.match(taken?.body.why, /^its node was quarantined: two holders/)
  assert.deepEqual(await liveAllocations(store, 'gpu-001'), [])
})

test('work that is placed while the node is withdrawn or drained loses the race, or is taken too', async (t) => {
  const rounds = 12
  const ids = Array.from({ length: rounds }, (_, round) => `gpu-${round}`)
  const world = await setUp(t, ...ids)
  const { store, feed, clock } = world
  const core = { store, feed, clock, random: world.random }
  for (const [round, node] of ids.entries()) {
    const placing = [1, 2, 3, 4].map((one) =>
      placeAllocation(core, { id: `${node}-${one}`, node, vcluster: 'training', owner: 'slurm' }, operator),
    )
    const ending: readonly Promise<unknown>[] =
      round % 3 === 0
        ? [changeNode(core, node, 'drain', operator), giveBackAllocation(core, `${node}-1`, 'done', operator)]
        : [
            world.call('operator', 'POST', `/v1/nodes/${node}/${round % 3 === 1 ? 'quarantine' : 'revoke'}`, {
              reason: 'r',
            }),
          ]
    await Promise.all([...placing, ...ending])
    const { allocations, drain, membership } = await world.node(node)
    const live = await liveAllocations(store, node)
    assert.equal(allocations, live.length)
    if (membership.kind !== 'active') assert.equal(live.length, 0)
    else assert.ok(live.every(({ value }) => value.state.kind === (drain === 'draining' ? 'releasing' : 'running')))
    const told = (await world.outbox(node)).filter(({ type }) => type === 'allocation.released')
    const all = await store.list('allocation', { where: { node }, after: null, limit: 100 })
    assert.equal(told.length, all.length - live.length)
  }
})
