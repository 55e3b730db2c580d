// Tasks over long-polls, at a real plane: delivered at least once, held by one process, and stopped where a channel would be cut.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStatement, type StatementOf } from '#wire/core/statement.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall } from '../process/node-call.ts'
import type { Json } from '../process/operator-call.ts'
import type { RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { channelOf } from './channel-setup.ts'

const plane = sharedPlane()

const done = {
  state: 'completed',
  code: null,
  exit_code: 0,
  detail: null,
  output: null,
  started_at: null,
  evidence: null,
}

const diagnostics = { type: 'collect-diagnostics' }

/** By the administrator, who may: the nodes here are in no vCluster. */
const queue = async (at: Plane, node: string, more: object = {}): Promise<Json> => {
  const { status, body } = await at.api('POST', '/v1/tasks', { node, ...diagnostics, ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

const poll = async (node: RawNode, wait = 30): Promise<StatementOf<'task'>[]> => {
  const { status, body } = await node.call('GET', `/v1/nodes/${node.id()}/tasks/wait?wait=${wait}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body.tasks.map(({ task }: Json) => {
    const parsed = parseStatement('task', task)
    assert(parsed !== null, task)
    return parsed.value
  })
}

const answer = (node: RawNode, task: string, body: object = done) =>
  node.call('POST', `/v1/nodes/${node.id()}/tasks/${task}/result`, body)

const show = async (id: string, at = plane()): Promise<Json> => (await at.api('GET', `/v1/tasks/${id}`)).body
const record = async (id: string): Promise<Json> => (await plane().api('GET', `/v1/nodes/${id}`)).body

test('a waiting long-poll gets a task the moment it is queued, and the node is present as with a channel', async () => {
  const node = await activeNode(plane(), 'polling')
  const waiting = poll(node)
  await eventually('the poll to be presence', async () => (await record('polling')).sessions.length === 1)
  const { id } = await queue(plane(), 'polling')
  const [task] = await waiting
  assert.deepEqual(
    [task?.id, task?.node, task?.epoch, task?.counter, task?.domain],
    [id, 'polling', 1, 1, plane().domain],
  )
  assert.deepEqual((await answer(node, id)).body, { state: 'completed' })
  assert.equal((await show(id)).state, 'completed')
  assert.deepEqual(await poll(node, 0), [])
  assert.equal((await record('polling')).sessions.length, 1)
})

test('what was dispatched and not answered is sent again to another process of the epoch, and finished by it', async () => {
  const node = await activeNode(plane(), 'restarted')
  const { id } = await queue(plane(), 'restarted')
  const first = node.copy(evidenceOf('first'))
  assert.equal((await poll(first)).at(0)?.id, id)
  assert.deepEqual(await poll(first, 0), [], 'not again to the process that has it')
  const { identity, reply } = await first.renew()
  assert(identity !== null, JSON.stringify(reply.body))
  first.use(identity)
  const again = await poll(first)
  assert.deepEqual([again[0]?.id, again[0]?.counter], [id, 1])
  assert.equal((await answer(first, id)).status, 200)
})

test('a second process that polls while the first one answers is refused as a copy', async () => {
  const node = await activeNode(plane(), 'copied')
  const [original, copy] = [node.copy(evidenceOf('original')), node.copy(evidenceOf('copy'))]
  let stopped = false
  // A process that asks again whenever it is answered, as agents do.
  const polling = (async () => {
    while (!stopped) await original.call('GET', '/v1/nodes/copied/tasks/wait?wait=5')
  })()
  await eventually('the original to be present', async () => (await record('copied')).sessions.length === 1)
  const refused = await copy.call('GET', '/v1/nodes/copied/tasks/wait?wait=0')
  assert.deepEqual([refused.status, refused.body.code], [409, 'DUPLICATE_IDENTITY'])
  stopped = true
  await polling
})

test('long-polls that do not say who they are are two processes where they come from two addresses', async () => {
  const node = await activeNode(plane(), 'nameless')
  const path = '/v1/nodes/nameless/tasks/wait?wait=0'
  const elsewhere = () => nodeCall({ ...node.target, from: '127.0.0.2' }, node.identity(), 'GET', path)
  let stopped = false
  const polling = (async () => {
    while (!stopped) await node.call('GET', '/v1/nodes/nameless/tasks/wait?wait=2')
  })()
  await eventually('the first one to be present', async () => (await record('nameless')).sessions.length === 1)
  const refused = await elsewhere()
  assert.deepEqual([refused.status, refused.body.code], [409, 'DUPLICATE_IDENTITY'])
  // An agent that says who it is is another process than one that does not.
  const agent = await node.copy(evidenceOf('agent')).call('GET', path)
  assert.deepEqual([agent.status, agent.body.code], [409, 'DUPLICATE_IDENTITY'])
  // Calls of its own from the same address are not.
  assert.equal((await node.call('GET', path)).status, 200)
  assert.equal((await node.renew()).reply.status, 200)
  stopped = true
  await polling
  assert.equal((await elsewhere()).status, 200, 'the first address is silent')
})

test('a channel of another process fences a long-poll, and a long-poll does not end the channel of its own', async () => {
  const node = await activeNode(plane(), 'both')
  const holder = node.copy(evidenceOf('holder'))
  const channel = await channelOf(holder)
  const refused = await node.copy(evidenceOf('other')).call('GET', '/v1/nodes/both/tasks/wait?wait=0')
  assert.deepEqual([refused.status, refused.body.code], [409, 'DUPLICATE_IDENTITY'])
  assert.deepEqual(await poll(holder, 0), [])
  assert.equal(channel.ended(), false)
  channel.destroy()
})

test('T30: a revocation ends a waiting long-poll, and neither a task nor a result passes any more', async () => {
  const node = await activeNode(plane(), 'revoked')
  const { id } = await queue(plane(), 'revoked')
  assert.equal((await poll(node)).length, 1)
  const calls = [1, 2].map(() => node.call('GET', '/v1/nodes/revoked/tasks/wait?wait=60'))
  // The newer one has ended the older one: it waits.
  assert.equal((await Promise.race(calls)).status, 200)
  const revoked = await plane().api('POST', '/v1/nodes/revoked/revoke', { reason: 'stolen' })
  assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
  assert.deepEqual((await Promise.all(calls)).map(({ status }) => status).sort(), [200, 403])
  assert.equal((await answer(node, id)).status, 403)
  await eventually('the task to be unknown', async () => (await show(id)).state === 'unknown')
  const late = await plane().api('POST', '/v1/tasks', { node: 'revoked', ...diagnostics })
  assert.deepEqual([late.status, late.body.code], [403, 'NODE_REVOKED'])
})

test('of several calls at once the newest waits, and the others are answered with nothing', async () => {
  const node = await activeNode(plane(), 'impatient')
  const first = poll(node, 60)
  await eventually('it to wait', async () => (await record('impatient')).sessions.length === 1)
  const second = poll(node, 60)
  assert.deepEqual(await first, [])
  const { id } = await queue(plane(), 'impatient')
  assert.equal((await second)[0]?.id, id)
})

test('a result that does not fit, is for no task of the node, or is too long is refused', async () => {
  const node = await activeNode(plane(), 'talkative')
  const { id } = await queue(plane(), 'talkative')
  await poll(node)
  const code = async (task: string, body: object) => (await answer(node, task, body)).body.code
  assert.equal(await code(id, { ...done, state: 'dispatched' }), 'REQUEST_INVALID')
  assert.equal(
    await code(id, { ...done, output: { head: 'x'.repeat(9000), tail: '', bytes: 9000 } }),
    'REQUEST_INVALID',
  )
  assert.equal(await code(id, { ...done, evidence: { log: 'x'.repeat(5000) } }), 'REQUEST_INVALID')
  assert.equal(await code(`task_${'b'.repeat(26)}`, done), 'TASK_NOT_FOUND')
  const control = '\u001b[2J'.repeat(2000)
  const output = { head: control, tail: control, bytes: 16_000 }
  assert.deepEqual((await answer(node, id, { ...done, output })).body, { state: 'completed' })
  const shown = await plane().muster('task', 'show', id)
  assert.equal(shown.code, 0, shown.stderr)
  assert.ok(!shown.stdout.includes('\u001b'), 'an escape sequence of a node reached the terminal')
})

test('the CLI queues, waits and says by its exit code how it ended', async () => {
  const node = await activeNode(plane(), 'served')
  const ran = plane().muster('task', 'create', '--node', 'served', '--type', 'collect-diagnostics', '--wait')
  const [task] = await poll(node)
  const failed = { ...done, state: 'failed', code: 'PROGRAM_FAILED', exit_code: 3, detail: 'no space' }
  assert.equal((await answer(node, task?.id ?? '', failed)).status, 200)
  const { code, stdout } = await ran
  assert.equal(code, 11, stdout)
  assert.match(stdout, /state +failed/)
  assert.match(stdout, /PROGRAM_FAILED, exit code 3: no space/)
  const listed = await plane().muster('task', 'list', '--node', 'served', '-o', 'name')
  assert.equal(listed.stdout.trim(), task?.id)
  const queued = await queue(plane(), 'served')
  const cancelled = await plane().muster('task', 'cancel', queued.id, '--reason', 'no longer needed')
  assert.match(cancelled.stdout, /no longer needed/)
  const wrong = await plane().muster('task', 'create', '--node', 'served', '--type', 'run', '--param', 'name')
  assert.deepEqual([wrong.code, /NAME=TEXT/.test(wrong.stderr)], [2, true])
})

test('a plane that is killed after a dispatch has lost nothing: the next one sends the task again and takes the result', async (t) => {
  const first = await startPlane(t)
  const node = await activeNode(first, 'survivor')
  const { id } = await queue(first, 'survivor')
  const waiting = await queue(first, 'survivor')
  const sent = await poll(node)
  await first.kill9()
  const second = await first.restart()
  const again = await eventually('it to be sent again', async () => {
    const tasks = await poll(node)
    return tasks.length === 0 ? null : tasks
  })
  const seen = new Set([...sent, ...again, ...(await poll(node, 0))].map((task) => task.id))
  assert.deepEqual([...seen].sort(), [id, waiting.id].sort())
  for (const task of seen) assert.equal((await answer(node, task)).status, 200)
  assert.deepEqual([(await show(id, second)).state, (await show(waiting.id, second)).state], ['completed', 'completed'])
})
