// Tasks from the plane to a host and back, with real processes on both sides: what is carried out, and what becomes of it when a process
// ends in the middle.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, before, test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import type { SignerListAnswer } from '#wire/tasks/signer-api.ts'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import type { Json } from '../process/operator-call.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { endOfTask, floodBytes, queueTask, startTaskHost, type TaskHost } from '../process/task-host.ts'
import { tempFolder } from '../process/temp-folder.ts'

const served = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-task-files-'))
after(() => fs.rmSync(served, { recursive: true, force: true }))
const thing = Buffer.from('what the host lacks\n')
fs.writeFileSync(path.join(served, 'thing'), thing, { mode: 0o644 })
fs.chmodSync(served, 0o755)

const setUp = shared(async (scope) => {
  let plane = await startPlane(scope, { args: ['--task-files', served] })
  const turnedOn = await plane.muster('domain', 'set', 'tasks.run=true')
  if (turnedOn.code !== 0) throw new Error(turnedOn.stderr)
  const host = await startTaskHost(scope, plane, 'th-1')
  return {
    plane: (): Plane => plane,
    host,
    restartPlane: async () => {
      await plane.kill9()
      plane = await plane.restart()
    },
  }
})
const plane = (): Plane => setUp().plane()
let host: TaskHost
before(() => {
  host = setUp().host
})

const started = (runs: number): Promise<unknown> =>
  eventually('the program to have been started', () => host.runs().length === runs, { withinMs: 60_000 })

test('what a task wrote and how it ended come back, and status and metrics of the agent know of it', async () => {
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'quick' }))
  assert.deepEqual([task.state, task.code, task.exit_code], ['completed', null, 0], JSON.stringify(task))
  assert.equal(task.result.output.head.trim(), 'quick as it is')
  await eventually('nothing to be under way', () => host.agent().says()?.tasks?.length === 0)
})

test('a signer is rotated and withdrawn while the helper learns of it without a task, and the next task is signed by another', async () => {
  const signers = async () => (await plane().api('GET', '/v1/task-signers')).body as SignerListAnswer
  const reached = async () => {
    const { number, signers: all } = await signers()
    const signing = all.find(({ state }) => state === 'signing')?.key ?? ''
    await eventually('the helper to have the newest statement', () => host.statementNumber() === number, {
      withinMs: 60_000,
    })
    return { number, signing }
  }
  const change = async (...args: string[]) => {
    const done = await plane().muster('signer', ...args)
    assert.equal(done.code, 0, done.stderr)
  }
  const quick = async () => {
    const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'quick' }))
    assert.deepEqual([task.state, task.code], ['completed', null], JSON.stringify(task))
  }

  const first = await reached()
  await change('rotate', '--now')
  const rotated = await reached()
  assert.ok(rotated.number > first.number && rotated.signing !== first.signing)
  await quick()
  await change('withdraw', rotated.signing, '--reason', 'its backup was stolen')
  const withdrawn = await reached()
  assert.ok(withdrawn.number > rotated.number && withdrawn.signing !== rotated.signing)
  await quick()
  const { number } = withdrawn
  await eventually(
    'the plane to have kept what the agent said',
    async () => (await signers()).reported[0]?.number === number,
    {
      withinMs: 60_000,
      everyMs: 200,
    },
  )
  const listed = await plane().muster('signer', 'list')
  assert.match(listed.stderr, new RegExp(`^statement ${number}: 1 of 1 nodes that take tasks have it`))
  assert.match(listed.stdout, new RegExp(`^${withdrawn.signing} .* 1$`, 'm'))
})

test('what the host does not allow is refused with a code, and never run', async () => {
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'cleanup', { name: 'any' }))
  assert.deepEqual([task.state, task.code], ['failed', 'TYPE_NOT_ALLOWED'])
  const unlisted = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'nothing' }))
  assert.deepEqual([unlisted.state, unlisted.code], ['failed', 'NOT_LISTED'])
})

test('diagnostics are collected as the machine would show them', async () => {
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'collect-diagnostics'))
  assert.equal(task.state, 'completed', JSON.stringify(task))
  assert.match(task.result.output.head, /is connected to .*\nIt is node th-1 of domain/)
  assert.equal(task.result.evidence.phase, 'running')
})

test('a new recovery key takes the place of the one before', async () => {
  const { state } = host.agent()
  const before = keptIdentity(state).recovery?.credential
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'rotate-recovery'))
  assert.equal(task.state, 'completed', JSON.stringify(task))
  const now = keptIdentity(state).recovery?.credential
  assert.ok(before?.kind === 'key' && now?.kind === 'key' && now.keyPem !== before.keyPem)
})

test('a file comes from the plane by its digest, and only to a node that has a task for it', async (t) => {
  const sha256 = createHash('sha256').update(thing).digest('hex')
  const place = path.join(host.folder, 'files', 'thing')
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'fetch-file', { sha256, path: place }))
  assert.deepEqual([task.state, task.code], ['completed', null], JSON.stringify(task))
  assert.deepEqual(fs.readFileSync(place), thing)
  const folder = path.join(host.agent().state, 'task-files')
  await eventually('what was fetched to be removed', () => fs.readdirSync(folder).length === 0)
  // A helper in its unit cannot read what the agent keeps for itself.
  assert.deepEqual(
    [folder, path.dirname(folder)].map((one) => fs.statSync(one).mode & 0o077),
    [0o011, 0o011],
  )
  const other = await activeNode(plane(), 'th-2')
  const connection = await openTlsConnection(t, await plane().target(), other.identity())
  const { body } = await connection.call('GET', `/v1/nodes/th-2/task-files/${sha256}`)
  assert.equal(body.code, 'TASK_FILE_NOT_FOUND')
  const absent = { sha256: 'a'.repeat(64), path: place }
  const none = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'fetch-file', absent))
  assert.deepEqual([none.state, none.code], ['failed', 'NOT_DONE'])
})

test('an agent that is killed in the middle finds the task with the helper, and its result reaches the plane', async () => {
  const id = await queueTask(plane(), 'th-1', 'run', { name: 'slow' })
  await started(1)
  await host.killAgent()
  host.letGo()
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code], ['completed', null], JSON.stringify(task))
  assert.equal(task.result.output.head.trim(), 'it is done')
  assert.equal(host.runs().length, 1)
})

test('a result that no plane is there to take is kept, over a restart of the agent, and taken by the plane that comes back', async () => {
  host.hold()
  const id = await queueTask(plane(), 'th-1', 'run', { name: 'slow' })
  await started(2)
  const back = setUp().restartPlane()
  host.letGo()
  await host.killAgent()
  await back
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code], ['completed', null], JSON.stringify(task))
  assert.equal(host.runs().length, 2)
})

test('a helper that is killed in the middle makes the task unknown, and it is not run again', async () => {
  host.hold()
  const id = await queueTask(plane(), 'th-1', 'run', { name: 'slow' })
  await started(3)
  await host.killHelper()
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code], ['unknown', 'INTERRUPTED'], JSON.stringify(task))
  // The plane sends what has no result over each new channel: this one has.
  await host.killAgent()
  const next = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'quick' }))
  assert.equal(next.state, 'completed')
  assert.equal(host.runs().length, 3)
})

test('output of gigabytes and a program that forks, hangs and ignores SIGTERM delay neither the channel nor a renewal, after which the result counts', async () => {
  host.hold()
  const id = await queueTask(plane(), 'th-1', 'run', { name: 'flood' })
  const stubborn = await queueTask(plane(), 'th-1', 'run', { name: 'stubborn' })
  await started(4)
  const { serial } = keptIdentity(host.agent().state).current
  host.agent().signal('SIGUSR2')
  await eventually('a channel with the renewed certificate', async () => {
    const { current } = keptIdentity(host.agent().state)
    const { body } = await plane().api('GET', '/v1/nodes/th-1')
    const [session] = body.sessions
    return current.serial !== serial && body.sessions.length === 1 && session.serial === current.serial
  })
  assert.equal((await plane().api('GET', `/v1/tasks/${id}`)).body.state, 'dispatched')
  const beside = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'quick' }))
  assert.equal(beside.state, 'completed', JSON.stringify(beside))
  const ended = await endOfTask(plane(), stubborn)
  assert.deepEqual([ended.state, ended.code], ['failed', 'TIMED_OUT'], JSON.stringify(ended))
  host.letGo()
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code, host.runs().length], ['completed', null, 4], JSON.stringify(task))
  const { head, tail, bytes } = task.result.output
  assert.deepEqual([head.length, tail.length, bytes], [8192, 8192, floodBytes])
  const { body } = await plane().api('GET', '/v1/nodes/th-1')
  assert.deepEqual(
    [body.sessions.length, body.conditions],
    [1, []],
    'the channel that the renewal opened is still there',
  )
})

test('a plane whose statement key the host has not pinned has nothing done there, whatever it signs', async () => {
  const file = path.join(host.folder, 'statement-keys.pem')
  const pinned = fs.readFileSync(file)
  const runs = host.runs().length
  // Root lays down the keys of another domain: to this host, the plane is now one with a signer of its own making.
  fs.writeFileSync(file, toPem('PUBLIC KEY', generateKey('ed25519').spki))
  const task = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'slow' }))
  assert.deepEqual([task.state, task.code], ['failed', 'STATEMENT_NOT_SIGNED'], JSON.stringify(task))
  fs.writeFileSync(file, pinned)
  const next = await endOfTask(plane(), await queueTask(plane(), 'th-1', 'run', { name: 'quick' }))
  assert.deepEqual([next.state, host.runs().length], ['completed', runs], JSON.stringify(next))
  const { entries } = (await plane().api('GET', '/v1/journal?node=th-1&type=task.refused')).body
  assert.ok(entries.some(({ entry }: Json) => entry.body.code === 'STATEMENT_NOT_SIGNED'))
})

test('a reboot is done once the machine has another boot, which the plane hears of after it', async (t) => {
  const turnedOn = await plane().muster('domain', 'set', 'tasks.reboot=true')
  assert.equal(turnedOn.code, 0, turnedOn.stderr)
  const restarting = await startTaskHost(t, plane(), 'th-4', { reboots: true })
  const id = await queueTask(plane(), 'th-4', 'reboot')
  const asked = path.join(restarting.folder, 'reboots')
  await eventually('the machine to be asked to restart', () => fs.existsSync(asked))
  assert.equal((await plane().api('GET', `/v1/tasks/${id}`)).body.state, 'dispatched')
  const file = path.join(restarting.folder, 'helper', 'tasks', `${id}.json`)
  const record = JSON.parse(fs.readFileSync(file, 'utf8')) as { boot: string; result: unknown }
  assert.deepEqual([record.result, /^kernel\/./.test(record.boot)], [null, true], record.boot)
  // To the helper after this one, the machine has been restarted: nothing else tells it.
  fs.writeFileSync(file, JSON.stringify({ ...record, boot: 'kernel/before' }))
  await restarting.killAgent()
  await restarting.killHelper()
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code], ['completed', null], JSON.stringify(task))
  assert.deepEqual(task.result.evidence, { boot_before: 'kernel/before', boot_after: record.boot })
  assert.equal(fs.readFileSync(asked, 'utf8').trim().split('\n').length, 1)
})

test('a diskless node that comes back with nothing joins in a new epoch: its task is unknown, and not begun again', async (t) => {
  const diskless = await startTaskHost(t, plane(), 'th-5', { mac: '52:54:00:00:00:75' })
  const id = await queueTask(plane(), 'th-5', 'run', { name: 'slow' })
  await eventually('the program to have been started', () => diskless.runs().length === 1)
  await diskless.restartWithNothing()
  const task = await endOfTask(plane(), id)
  assert.deepEqual([task.state, task.code, task.dispatched.epoch], ['unknown', 'NO_ANSWER', 1], JSON.stringify(task))
  const next = await endOfTask(plane(), await queueTask(plane(), 'th-5', 'run', { name: 'quick' }))
  assert.deepEqual([next.state, next.dispatched.epoch], ['completed', 2], JSON.stringify(next))
  assert.equal(diskless.runs().length, 1)
})

test('a host whose clock is set years off carries out what is signed now, by the time that a fresh statement proves', async (t) => {
  const faketime = withPeer(t, 'faketime')
  if (faketime === null) return
  const time = openFakeTime(tempFolder(t), faketime)
  const wrong = await startTaskHost(t, plane(), 'th-3', { env: time.env })
  const run = async () =>
    endOfTask(plane(), await queueTask(plane(), 'th-3', 'run', { name: 'note', arguments: ['x'] }))
  assert.equal((await run()).state, 'completed')
  for (const [at, years] of [9, -19].entries()) {
    time.advance(years * 365 * 86_400_000)
    const task = await run()
    assert.deepEqual([task.state, task.code, wrong.noted().length], ['completed', null, at + 2], JSON.stringify(task))
  }
})
