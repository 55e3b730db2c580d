// A worker queues tasks and reads their results, within the rights of its issuer, until it is revoked in the middle.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { parseStatement } from '#wire/core/statement.ts'
import { cluster, type Cluster } from '../fakes/service-accounts.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { startKeyServer, type KeyServer } from '../process/key-server.ts'
import type { RawNode } from '../process/raw-node.ts'
import { enrolledWorker } from '../process/raw-worker.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

type SetUp = {
  readonly plane: Plane
  readonly east: Cluster
  readonly keys: KeyServer
  readonly node: RawNode
}

const setUp = shared<SetUp>(async (scope) => {
  const plane = await startPlane(scope)
  const ok = async (method: 'POST' | 'PATCH', path: string, body: object): Promise<void> => {
    const reply = await plane.api(method, path, body)
    assert.ok(reply.status < 300, `${path}: ${JSON.stringify(reply.body)}`)
  }
  const east = cluster('RS256', 'https://east.example')
  const keys = await startKeyServer(scope, east)
  const { iss, aud, sub } = east
  const rights = { types: ['service', 'run'], vclusters: ['blue'] }
  await ok('POST', '/v1/worker-issuers', { name: 'east', iss, aud, sub, jwks_url: keys.url, ca: keys.ca, ...rights })
  for (const name of ['blue', 'green']) {
    await ok('POST', '/v1/vclusters', { name })
    await ok('PATCH', `/v1/vclusters/${name}`, { set: { 'tasks.types': ['service', 'collect-diagnostics', 'run'] } })
  }
  const node = await activeNode(plane, 'blue-1')
  await activeNode(plane, 'green-1')
  await activeNode(plane, 'alone-1')
  await ok('POST', '/v1/nodes/blue-1/assign', { to: 'blue' })
  await ok('POST', '/v1/nodes/green-1/assign', { to: 'green' })
  return { plane, east, keys, node }
})

/** That nothing waits any longer for whose right has ended is what the documentation promises. */
const cancelledMs = 5000

const restart = (more: object = {}) => ({
  ...{ node: 'blue-1', type: 'service', parameters: { name: 'slurmd', action: 'restart' } },
  ...more,
})

test('a worker queues a task, its node carries it out, and the worker reads the result', async () => {
  const { plane, east, node } = setUp()
  const worker = await enrolledWorker(await plane.target(), east)
  const queued = await worker.call('POST', '/v1/worker-tasks', restart({ idempotency_key: 'job-17' }))
  assert.equal(queued.status, 201, JSON.stringify(queued.body))
  const { id } = queued.body
  assert.deepEqual(queued.body.queued_by, { kind: 'worker', id: worker.id(), name: worker.id() })
  assert.equal((await worker.call('POST', '/v1/worker-tasks', restart({ idempotency_key: 'job-17' }))).body.id, id)
  const { body } = await node.call('GET', '/v1/nodes/blue-1/tasks/wait?wait=30')
  assert.equal(parseStatement('task', body.tasks[0].task)?.value.id, id)
  const result = { state: 'completed', code: null, exit_code: 0, detail: null, started_at: null, evidence: null }
  const output = { head: 'done', tail: '', bytes: 4 }
  assert.equal((await node.call('POST', `/v1/nodes/blue-1/tasks/${id}/result`, { ...result, output })).status, 200)
  const shown = (await worker.call('GET', `/v1/worker-tasks/${id}`)).body
  assert.deepEqual([shown.state, shown.result.exit_code, shown.result.output.head], ['completed', 0, 'done'])
})

test('a worker may queue what its issuer, the vCluster and the domain allow, and sees its own tasks only', async () => {
  const { plane, east } = setUp()
  const target = await plane.target()
  const [worker, neighbour] = [await enrolledWorker(target, east), await enrolledWorker(target, east)]
  const answerTo = async (body: object) => (await worker.call('POST', '/v1/worker-tasks', body)).body
  const codeOf = async (body: object): Promise<string> => (await answerTo(body)).code
  // One answer about nodes of other vClusters, about those in none and about those that there are not.
  const outside = ['green-1', 'alone-1', 'nobody'].map(async (node) => {
    const { code, message, detail } = await answerTo(restart({ node }))
    return [code, message, detail.replaceAll(node, 'NODE')].join()
  })
  const [answer, ...others] = await Promise.all(outside)
  assert.match(answer ?? '', /^NODE_NOT_FOUND/)
  assert.deepEqual(others, [answer, answer])
  assert.equal(await codeOf({ node: 'blue-1', type: 'collect-diagnostics' }), 'TASK_TYPE_NOT_ALLOWED')
  assert.equal(await codeOf({ node: 'blue-1', type: 'run', parameters: { name: 'x' } }), 'TASK_TYPE_NOT_ALLOWED')
  assert.equal(await codeOf(restart({ parameters: { name: 'slurmd' } })), 'TASK_PARAMETERS_INVALID')
  const { body } = await worker.call('POST', '/v1/worker-tasks', restart())
  assert.equal((await neighbour.call('GET', `/v1/worker-tasks/${body.id}`)).body.code, 'TASK_NOT_FOUND')
  const ofOperator = (await plane.api('POST', '/v1/tasks', restart())).body
  assert.equal((await worker.call('GET', `/v1/worker-tasks/${ofOperator.id}`)).body.code, 'TASK_NOT_FOUND')
  assert.equal((await plane.api('GET', `/v1/tasks/${body.id}`)).body.state, 'queued')
})

test('while the key set of its issuer is away a worker queues, reads and renews as before', async () => {
  const { plane, east, keys } = setUp()
  const worker = await enrolledWorker(await plane.target(), east)
  keys.answer(503)
  const { status, body } = await worker.call('POST', '/v1/worker-tasks', restart({ idempotency_key: randomUUID() }))
  assert.equal(status, 201, JSON.stringify(body))
  const renewed = await worker.renew()
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body))
  assert.equal((await worker.call('GET', `/v1/worker-tasks/${body.id}`)).body.state, 'queued')
  keys.answer(null)
})

test('a worker that is revoked in the middle queues and reads nothing any more, and what it queued is cancelled', async () => {
  const { plane, east } = setUp()
  const worker = await enrolledWorker(await plane.target(), east)
  const { id } = (await worker.call('POST', '/v1/worker-tasks', restart({ idempotency_key: randomUUID() }))).body
  const revoked = await plane.api('POST', `/v1/workers/${worker.id()}/revoke`, { reason: 'token leaked' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  assert.equal((await worker.call('POST', '/v1/worker-tasks', restart())).body.code, 'WORKER_REVOKED')
  assert.equal((await worker.call('GET', `/v1/worker-tasks/${id}`)).body.code, 'WORKER_REVOKED')
  const state = async (): Promise<string> => (await plane.api('GET', `/v1/tasks/${id}`)).body.state
  await eventually('the task to be cancelled', async () => (await state()) === 'cancelled', { withinMs: cancelledMs })
})

test('what was queued by a key that is revoked, or by workers whose issuer is removed, is cancelled within 5 seconds', async (t) => {
  const { plane } = setUp()
  const south = cluster('ES256', 'https://south.example')
  const { iss, aud, sub } = south
  const rights = { types: ['service'], vclusters: ['blue'] }
  const added = await plane.api('POST', '/v1/worker-issuers', {
    ...{ name: 'south', iss, aud, sub, jwks: south.jwks() },
    ...rights,
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  const worker = await enrolledWorker(await plane.target(), south)
  const ofWorker = (await worker.call('POST', '/v1/worker-tasks', restart())).body.id
  const { key, secret } = (await plane.api('POST', '/v1/keys', { name: 'leaver', role: 'operator' })).body
  const file = path.join(tempFolder(t), 'leaver.key')
  fs.writeFileSync(file, secret, { mode: 0o600 })
  const asked = ['task', 'create', '--node', 'blue-1', '--type', 'collect-diagnostics', '-o', 'json']
  const made = await plane.musterWith({ env: { MUSTER_KEY_FILE: file } }, ...asked)
  assert.equal(made.code, 0, made.stderr)
  const ofKey = JSON.parse(made.stdout).id
  const toBeCancelled = (task: string) =>
    eventually(
      `${task} to be cancelled`,
      async () => (await plane.api('GET', `/v1/tasks/${task}`)).body.state === 'cancelled',
      { withinMs: cancelledMs },
    )
  assert.equal((await plane.api('POST', '/v1/worker-issuers/south/remove', {})).status, 200)
  await toBeCancelled(ofWorker)
  assert.equal((await plane.api('POST', `/v1/keys/${key.id}/revoke`, {})).status, 200)
  await toBeCancelled(ofKey)
})
