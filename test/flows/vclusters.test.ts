// vClusters and who is in them, against a real store, over the Unix socket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { readOf, type Write, entry } from '#domain/core/change.ts'
import { assignNode, moveNode } from '#plane/fleet/assign-node.ts'
import { createVCluster, deleteVCluster } from '#plane/fleet/change-vclusters.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { VClusterBody, VClusterListAnswer } from '#wire/fleet/vcluster-api.ts'
import type { Json } from '../process/operator-call.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const ok = async (plane: OperatorSetup, method: string, path: string, body?: object): Promise<Json> => {
  const reply = await plane.call('platform-admin', method, path, body)
  assert.ok(reply.status === 200 || reply.status === 201, `${method} ${path}: ${JSON.stringify(reply.body)}`)
  return reply.body
}

const refused = async (
  plane: OperatorSetup,
  method: string,
  path: string,
  body?: object,
): Promise<[number, string, string]> => {
  const { status, body: answer } = await plane.call('platform-admin', method, path, body)
  return [status, answer.code, answer.detail ?? '']
}

const overlay = {
  files: [{ path: 'etc/worker.conf', mode: 0o644, content: 'batch = 8\n' }],
  services: [{ name: 'worker', command: ['/usr/bin/worker', '{overlay}/etc/worker.conf'] }],
}

test('a vCluster is made, changed and shown; every change counts, and what is so already does not', async (t) => {
  const plane = await setUpOperatorServer(t)
  const made = await ok(plane, 'POST', '/v1/vclusters', { name: 'training', set: { peering: 'isolated' } })
  assert.ok(Check(VClusterBody, made))
  assert.deepEqual([made.revision, made.peering, made.policy.enforcementMode], [1, 'isolated', 'observe'])
  assert.deepEqual((await refused(plane, 'POST', '/v1/vclusters', { name: 'training' })).slice(0, 2), [
    409,
    'VCLUSTER_EXISTS',
  ])
  const set = { 'policy.enforcementMode': 'enforce', 'policy.execWhitelist': ['nvidia-smi'] }
  const changed = await ok(plane, 'PATCH', '/v1/vclusters/training', { set, overlay })
  assert.deepEqual(
    [changed.revision, changed.overlay, changed.policy.execWhitelist],
    [2, { ...overlay, checks: [] }, ['nvidia-smi']],
  )
  const backwards = {
    services: overlay.services,
    files: [{ content: 'batch = 8\n', mode: 0o644, path: 'etc/worker.conf' }],
  }
  assert.equal((await ok(plane, 'PATCH', '/v1/vclusters/training', { set, overlay: backwards })).revision, 2)
  assert.deepEqual(await ok(plane, 'GET', '/v1/vclusters/training'), changed)
  const listed = await ok(plane, 'GET', '/v1/vclusters')
  assert.ok(Check(VClusterListAnswer, listed))
  assert.deepEqual(listed.vclusters[0]?.services, ['worker'])
  assert.deepEqual(
    (await plane.journal('vcluster.changed')).map(({ body }) => body['revision']),
    [2],
  )
})

test('how services run, templates and checks come back as they were written, with what was left out filled in', async (t) => {
  const plane = await setUpOperatorServer(t)
  const limits = { memoryBytes: 2 ** 30, cpus: 1.5, openFiles: 4096 }
  const worker = {
    ...{ name: 'worker', command: ['/usr/bin/worker'], user: 'worker', environment: { BATCH: '8' } },
    ...{ workingDirectory: '{overlay}', restart: 'on-failure', limits, template: true },
  }
  const plain = { name: 'plain', command: ['/usr/bin/plain'] }
  const file = { path: 'etc/worker.conf', mode: '0640', content: '{id}', template: true }
  const checks = [{ name: 'disks', command: ['muster:read-only'] }]
  const asked = { files: [file], services: [worker, plain], checks }
  const made = await ok(plane, 'POST', '/v1/vclusters', { name: 'training', overlay: asked })
  assert.ok(Check(VClusterBody, made))
  assert.deepEqual(made.overlay, {
    files: [{ ...file, mode: 0o640 }],
    services: [worker, plain],
    checks: [{ ...checks[0], intervalMs: 60_000, timeoutMs: 10_000 }],
  })
  const again = await ok(plane, 'PATCH', '/v1/vclusters/training', { overlay: made.overlay })
  assert.equal(again.revision, 1)
  assert.deepEqual(await ok(plane, 'GET', '/v1/vclusters/training'), made)
})

test('what is no overlay is refused before anything is read of it', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'POST', '/v1/vclusters', { name: 'training' })
  const file = overlay.files[0]
  for (const wrong of [
    { files: [{ ...file, path: '/etc/passwd' }], services: [] },
    { files: [{ ...file, path: '../../etc/passwd' }], services: [] },
    { files: [{ ...file, owner: 'root' }], services: [] },
    { files: [], services: [{ name: 'a b', command: ['x'] }] },
    { files: [], services: [{ name: 'a', command: [] }] },
    { services: [{ name: 'a', command: ['x'], user: 'root' }] },
    { services: [{ name: 'a', command: ['x'], environment: { MUSTER_NODE: 'other' } }] },
    { services: [{ name: 'a', command: ['x'], limits: { memory: 1 } }] },
    { checks: [{ name: 'a', command: ['x'], intervalMs: 10 }] },
    { files: [{ ...file, mode: '0888' }] },
  ]) {
    const [status, code] = await refused(plane, 'PATCH', '/v1/vclusters/training', { overlay: wrong })
    assert.deepEqual([status, code], [400, 'REQUEST_INVALID'], JSON.stringify(wrong))
  }
  const twice = { ...overlay, files: [file, file] }
  assert.deepEqual(await refused(plane, 'PATCH', '/v1/vclusters/training', { overlay: twice }), [
    400,
    'VCLUSTER_INVALID',
    'etc/worker.conf is there twice',
  ])
  assert.equal((await ok(plane, 'GET', '/v1/vclusters/training')).revision, 1)
})

test('nodes are assigned by operators, vClusters made by platform-admins', async (t) => {
  const plane = await setUpOperatorServer(t)
  const asked = await plane.call('operator', 'POST', '/v1/vclusters', { name: 'training' })
  assert.equal(asked.body.code, 'ROLE_FORBIDDEN')
  for (const name of ['training', 'inference']) await ok(plane, 'POST', '/v1/vclusters', { name })
  for (const id of ['a', 'b']) await ok(plane, 'POST', '/v1/nodes', { id })
  const path = '/v1/nodes/a'
  assert.equal((await plane.call('viewer', 'POST', `${path}/assign`, { to: 'training' })).body.code, 'ROLE_FORBIDDEN')
  const assigned = await plane.call('operator', 'POST', `${path}/assign`, { to: 'training' })
  assert.deepEqual([assigned.status, assigned.body.vcluster, assigned.body.vcluster_revision], [200, 'training', 1])
  const again = await refused(plane, 'POST', `${path}/assign`, { to: 'inference' })
  assert.deepEqual(again.slice(0, 2), [409, 'NODE_STATE_CONFLICT'])
  assert.match(again[2], /muster node move a --to inference/)
  assert.equal((await ok(plane, 'POST', `${path}/move`, { to: 'inference' })).vcluster, 'inference')
  const inside = await ok(plane, 'GET', '/v1/nodes?vcluster=inference')
  assert.deepEqual(
    inside.nodes.map(({ id }: Json) => id),
    ['a'],
  )
  assert.deepEqual((await refused(plane, 'POST', `${path}/move`, { to: 'nowhere' })).slice(0, 2), [
    404,
    'VCLUSTER_NOT_FOUND',
  ])
  assert.equal((await ok(plane, 'POST', `${path}/unassign`, {})).vcluster, null)
  const entries = await Promise.all(
    (['node.assigned', 'node.moved', 'node.unassigned'] as const).map((type) => plane.journal(type)),
  )
  assert.deepEqual(
    entries.flat().map(({ type, node, body }) => [type, node, body['was'], body['vcluster']]),
    [
      ['node.assigned', 'a', null, 'training'],
      ['node.moved', 'a', 'training', 'inference'],
      ['node.unassigned', 'a', 'inference', null],
    ],
  )
})

test('one with nodes in it is deleted by force only, which unassigns them; its name goes on counting', async (t) => {
  const plane = await setUpOperatorServer(t)
  await ok(plane, 'POST', '/v1/vclusters', { name: 'training', overlay })
  for (const id of ['a', 'b', 'c']) await ok(plane, 'POST', '/v1/nodes', { id })
  for (const id of ['a', 'b']) await ok(plane, 'POST', `/v1/nodes/${id}/assign`, { to: 'training' })
  assert.deepEqual((await refused(plane, 'POST', '/v1/vclusters/training/delete', {})).slice(0, 2), [
    409,
    'VCLUSTER_IN_USE',
  ])
  assert.deepEqual((await ok(plane, 'GET', '/v1/vclusters/training')).closed, false)
  const deleted = await ok(plane, 'POST', '/v1/vclusters/training/delete', { force: true })
  assert.deepEqual(deleted.unassigned, ['a', 'b'])
  assert.deepEqual((await ok(plane, 'GET', '/v1/vclusters')).vclusters, [])
  for (const [method, path, body] of [
    ['GET', '/v1/vclusters/training'],
    ['GET', '/v1/nodes?vcluster=training'],
    ['PATCH', '/v1/vclusters/training', { set: { closed: false } }],
    ['POST', '/v1/vclusters/training/delete', {}],
    ['POST', '/v1/nodes/c/assign', { to: 'training' }],
  ] as const)
    assert.deepEqual((await refused(plane, method, path, body)).slice(0, 2), [404, 'VCLUSTER_NOT_FOUND'])
  const next = await ok(plane, 'POST', '/v1/vclusters', { name: 'training' })
  assert.deepEqual([next.revision > deleted.revision, next.closed, next.overlay.files], [true, false, []])
})

test('work keeps a node in its vCluster; forcing the node out takes the work from its owner, in one transaction', async (t) => {
  const plane = await setUpOperatorServer(t)
  for (const name of ['training', 'inference']) await ok(plane, 'POST', '/v1/vclusters', { name })
  await ok(plane, 'POST', '/v1/nodes', { id: 'a' })
  await ok(plane, 'POST', '/v1/nodes/a/assign', { to: 'training' })
  await place(plane, 'a', 'job-1')
  const [status, code, detail] = await refused(plane, 'POST', '/v1/nodes/a/move', { to: 'inference' })
  assert.deepEqual([status, code], [409, 'NODE_STATE_CONFLICT'])
  assert.match(detail, /1 allocation runs on a: drain it first \(muster node drain a\)/)
  const moved = await ok(plane, 'POST', '/v1/nodes/a/move', { to: 'inference', force: true })
  assert.deepEqual([moved.vcluster, moved.allocations], ['inference', 0])
  assert.equal((await plane.store.get('allocation', 'job-1'))?.value.state.kind, 'released')
  const [[released], [entryOfMove]] = [await plane.journal('allocation.released'), await plane.journal('node.moved')]
  assert.equal(released?.operation.split('-')[0], entryOfMove?.operation.split('-')[0])
})

/** As a scheduler leaves it. */
const place = async ({ store }: OperatorSetup, node: string, id: string): Promise<void> => {
  const row = await store.get('node', node)
  assert.ok(row !== null)
  const allocation = { id, vcluster: 'training', owner: 'team-a', node, createdAtMs: startMs, createdBy: 'operator:s' }
  const writes: Write[] = [
    { put: 'node', value: { ...row.value, allocations: 1 } },
    { put: 'allocation', value: { ...allocation, state: { kind: 'running' } } },
  ]
  const entries = [entry(operator, startMs, 'allocation.created', { node })] as const
  const reads = [readOf('node', node, row), readOf('allocation', id, null)]
  assert.notEqual(await store.commit({ reads, writes, entries }), 'lost-race')
}

test('assignments that race with a deletion win or lose cleanly: no node is ever in a vCluster that is gone', async (t) => {
  const plane = await setUpOperatorServer(t)
  const nodes = ['a', 'b', 'c', 'd']
  for (const id of nodes) await registerNode(plane, { id, profile: null, macs: [], bmcSerial: null }, operator)
  await createVCluster(plane, 'home', { set: {}, overlay: null }, operator)
  const tally = { won: 0, lost: 0, kept: 0, deleted: 0 }
  // On a busy machine a turn or a dozen may be too few for any assignment to win: further rounds wait for ever more.
  for (let round = 0; round < 12 || (tally.won === 0 && round < 26); round++) {
    const behind = round < 12 ? round : 2 ** (round - 8)
    const name = `v-${round}`
    const force = round % 2 === 0
    await createVCluster(plane, name, { set: {}, overlay: null }, operator)
    const assigning = nodes.map(async (id) => {
      const { value } = (await plane.store.get('node', id)) ?? assert.fail()
      if (value.assignment === null) return assignNode(plane, id, name, operator)
      return moveNode(plane, id, { to: name, force: false }, operator)
    })
    const [deleted, ...assigned] = await Promise.all([
      // A turn or more behind, so that both are under way.
      (async () => {
        for (let turn = 0; turn < behind; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
        return deleteVCluster(plane, name, { force }, operator)
      })(),
      ...assigning,
    ])
    const won = assigned.filter(({ kind }) => kind === 'committed').length
    const inside = await plane.store.nodes({ membership: null, profile: null, vcluster: name, after: null, limit: 10 })
    const { value } = (await plane.store.get('vcluster', name)) ?? assert.fail()
    const told = assigned.map((one) => (one.kind === 'refused' ? one.code : one.kind))
    if (deleted.kind === 'deleted') {
      assert.deepEqual([inside.length, value.deletedAtMs === null], [0, false], `round ${round}`)
      assert.ok(
        told.every((one) => ['committed', 'VCLUSTER_NOT_FOUND', 'NODE_STATE_CONFLICT'].includes(one)),
        told.join(),
      )
      // Without force no node was taken out of it: its nodes were in it before.
      if (!force) assert.deepEqual([deleted.unassigned, won], [[], 0], `round ${round}`)
    } else {
      assert.deepEqual([deleted.code, force, value.closed], ['VCLUSTER_IN_USE', false, false], `round ${round}`)
      assert.ok(inside.length > 0)
    }
    tally.won += won
    tally.lost += told.length - won
    tally[deleted.kind === 'deleted' ? 'deleted' : 'kept']++
  }
  assert.ok(tally.won > 0 && tally.deleted > 0, JSON.stringify(tally))
})
