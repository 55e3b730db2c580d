// The types of tasks beside `run`: what each of them may touch on a host, and what is told of it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { sha256Hex } from '#platform/bytes.ts'
import { placeFile } from '#platform/placed-file.ts'
import { done, refusedWith } from '../fakes/helped-host.ts'
import { hourMs, taskId, verifierOf } from '../fakes/signed-tasks.ts'
import { idOf, programUser, refusedAs, taskedHost, type TaskedHost } from '../fakes/tasked-host.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'

const never = new AbortController().signal
const withinMs = 600_000

const folderOf = (tasked: TaskedHost, name: string): string => {
  const folder = path.join(tasked.host.folder, name)
  fs.mkdirSync(folder, { mode: 0o755, recursive: true })
  return folder
}

test('fetch-file places the bytes that were signed for, and nothing else', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const [models, below] = [folderOf(tasked, 'models'), folderOf(tasked, 'models/small')]
  const bytes = Buffer.alloc(300_000, 'weights')
  const [sha256, from] = [sha256Hex(bytes), path.join(tasked.host.folder, 'fetched')]
  fs.writeFileSync(from, bytes)
  tasked.list(`[[tasks.files]]\ndirectory = "${models}"\nowner = "${programUser}"\nmode = 0o600\nlargest = "1M"\n`)
  const file = { sha256, path: `${below}/weights.bin` }
  const result = await tasked.carryOut({ type: 'fetch-file', parameters: file }, from)
  const place = path.join(below, 'weights.bin')
  assert.deepEqual([result.code, result.evidence], [null, { path: place, sha256, bytes: 300_000, replaced: false }])
  assert.ok(fs.readFileSync(place).equals(bytes))
  const { mode, uid } = fs.statSync(place)
  assert.deepEqual([mode & 0o7777, uid], [0o600, programUser === 'nobody' ? 65534 : Number(programUser)])

  fs.appendFileSync(from, 'more')
  const differs = await tasked.carryOut({ type: 'fetch-file', parameters: file }, from)
  assert.equal(differs.code, 'FILE_DIFFERS')
  fs.truncateSync(from, 2_000_000)
  const large = await tasked.carryOut({ type: 'fetch-file', parameters: file }, from)
  assert.deepEqual([large.code, /more than 1048576 bytes/.test(large.detail ?? '')], ['FILE_DIFFERS', true])
  fs.rmSync(from)
  fs.symlinkSync('/etc/passwd', from)
  assert.equal((await tasked.carryOut({ type: 'fetch-file', parameters: file }, from)).code, 'NOT_DONE')
  assert.equal((await tasked.carryOut({ type: 'fetch-file', parameters: file }, '/dev/zero')).code, 'NOT_DONE')
  assert.ok(fs.readFileSync(place).equals(bytes))
  assert.deepEqual(fs.readdirSync(below), ['weights.bin'])
})

test('only a file of the agent is placed, and of another one nothing is told', async (t) => {
  const folder = fs.realpathSync(tempFolder(t))
  const from = path.join(folder, 'from')
  fs.writeFileSync(from, 'secret')
  const uid = process.geteuid?.() ?? 0
  const file = { from, directory: folder, name: 'place', largest: 100, mode: 0o644, owner: null, withinMs }
  const sha256 = sha256Hex('secret')
  const other = await placeFile({ ...file, sha256, fromOwner: uid + 1 }, never)
  assert.deepEqual(other, { kind: 'not-placed', why: `${from} is not the agent's own file` })
  const differs = await placeFile({ ...file, sha256: sha256Hex('guess'), fromOwner: uid }, never)
  assert.ok(differs.kind === 'differs' && !differs.why.includes(sha256))
  assert.equal((await placeFile({ ...file, sha256, fromOwner: uid }, never)).kind, 'placed')
})

test('two files for one place do not become one: each is placed whole, or is not', async (t) => {
  const folder = fs.realpathSync(tempFolder(t))
  const contents = ['a', 'b'].map((letter) => Buffer.alloc(2_000_000, letter))
  const placing = contents.map((bytes, at) => {
    const from = path.join(folder, `from-${at}`)
    fs.writeFileSync(from, bytes)
    const bounds = { largest: 4_000_000, mode: 0o644, owner: null, withinMs }
    const file = { from, fromOwner: null, directory: folder, name: 'place', sha256: sha256Hex(bytes), ...bounds }
    return placeFile(file, never)
  })
  const placed = (await Promise.all(placing)).map(({ kind }) => kind)
  const found = fs.readFileSync(path.join(folder, 'place'))
  assert.ok(contents.some((bytes, at) => placed[at] === 'placed' && found.equals(bytes)))
  assert.deepEqual(fs.readdirSync(folder).sort(), ['from-0', 'from-1', 'place'])
})

test('a file that takes longer than it may is not put in place, also when its helper ends, and nothing is left of it', async (t) => {
  const folder = fs.realpathSync(tempFolder(t))
  const from = path.join(folder, 'from')
  fs.writeFileSync(from, '')
  // Without a block on the disk: only what is written of it in that time takes room.
  fs.truncateSync(from, 2 ** 29)
  const bounds = { largest: 2 ** 30, mode: 0o644, owner: null, withinMs: 20 }
  const file = { from, fromOwner: null, directory: folder, name: 'place', sha256: sha256Hex('other'), ...bounds }
  assert.deepEqual(await placeFile(file, never), { kind: 'stopped' })
  const ending = new AbortController()
  const placing = placeFile({ ...file, withinMs }, ending.signal)
  setTimeout(() => ending.abort(), 20)
  assert.deepEqual(await placing, { kind: 'stopped' })
  assert.deepEqual(await placeFile(file, ending.signal), { kind: 'stopped' })
  await eventually('what was written to be removed', () => fs.readdirSync(folder).length === 1)
})

test('fetch-file ends with its time, which agent.toml says, and with its helper', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const models = folderOf(tasked, 'models')
  const from = path.join(tasked.host.folder, 'fetched')
  fs.writeFileSync(from, '')
  fs.truncateSync(from, 2 ** 29)
  tasked.list(`[[tasks.files]]\ndirectory = "${models}"\nlargest = "1G"\nwithin = "1h"\n`)
  const parameters = { sha256: sha256Hex('x'), path: `${models}/x` }
  const task = tasked.authority.task({ type: 'fetch-file', parameters })
  done(await tasked.begin(task, null, from))
  const again = await tasked.restart()
  assert.equal((await again.ended(idOf(task))).code, 'INTERRUPTED')
  assert.deepEqual(fs.readdirSync(models), [])
})

test('fetch-file reaches no directory that is not listed, nor one that others could change or that is a link', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const models = folderOf(tasked, 'models')
  folderOf(tasked, 'models-old')
  fs.symlinkSync('/etc', path.join(models, 'linked'))
  fs.chmodSync(folderOf(tasked, 'models/open'), 0o777)
  const from = path.join(tasked.host.folder, 'fetched')
  fs.writeFileSync(from, 'x')
  tasked.list(`[[tasks.files]]\ndirectory = "${models}"\n`)
  const begin = (directory: string, name = 'x', file: string | undefined = from) => {
    const parameters = { sha256: sha256Hex('x'), path: `${directory}/${name}` }
    return tasked.begin(tasked.authority.task({ type: 'fetch-file', parameters }), null, file)
  }
  refusedAs(await begin('/etc'), 'NOT_LISTED')
  refusedAs(await begin(`${models}-old`), 'NOT_LISTED')
  refusedAs(await begin(`${models}/../models-old`), 'PARAMETERS_INVALID')
  refusedAs(await begin(models, '../x'), 'PARAMETERS_INVALID')
  refusedAs(await begin(models, '.bashrc'), 'PARAMETERS_INVALID')
  refusedAs(await begin(`${models}/linked`), 'PATH_UNSAFE')
  refusedAs(await begin(`${models}/open`), 'PATH_UNSAFE')
  refusedAs(await begin(`${models}/none`), 'PATH_UNSAFE')
  const task = tasked.authority.task({
    type: 'fetch-file',
    parameters: { sha256: sha256Hex('x'), path: `${models}/x` },
  })
  refusedAs(await tasked.begin(task), 'NOT_DONE')
  assert.deepEqual((await tasked.look()).tasks, [])
})

test('cleanup removes old files of listed directories, and keeps a list of them', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const [logs, evidence] = [folderOf(tasked, 'logs'), folderOf(tasked, 'evidence')]
  folderOf(tasked, 'logs/folder')
  fs.symlinkSync('/etc/passwd', path.join(logs, 'link'))
  const nowSeconds = tasked.clock.nowMs() / 1000
  for (const [age, name] of ['new', 'hour', 'day', 'week'].entries()) {
    fs.writeFileSync(path.join(logs, name), name)
    const at = nowSeconds - [0, 3600, 86_400, 604_800][age]!
    fs.utimesSync(path.join(logs, name), at, at)
  }
  tasked.list(
    `[tasks.cleanup.logs]\ndirectories = ["${logs}"]\nkeep_newest = 2\nolder_than = "1h"\nevidence = "${evidence}"\n`,
  )
  const task = tasked.authority.task({ type: 'cleanup', parameters: { name: 'logs' } })
  done(await tasked.begin(task))
  const list = path.join(evidence, `${idOf(task)}.json`)
  assert.deepEqual((await tasked.ended(idOf(task))).evidence, { removed: 2, bytes: 7, left: 0, list })
  assert.deepEqual(fs.readdirSync(logs).sort(), ['folder', 'hour', 'link', 'new'])
  const { removed } = JSON.parse(fs.readFileSync(list, 'utf8')) as { removed: { name: string }[] }
  assert.deepEqual(
    removed.map(({ name }) => name),
    ['week', 'day'],
  )
  refusedAs(await tasked.begin(tasked.authority.task({ type: 'cleanup', parameters: { name: 'other' } })), 'NOT_LISTED')
  fs.chmodSync(logs, 0o777)
  refusedAs(await tasked.begin(tasked.authority.task({ type: 'cleanup', parameters: { name: 'logs' } })), 'PATH_UNSAFE')
})

/** A file that nobody can remove, root included: something is mounted on it. */
const makeUnremovable = (t: Scope, file: string): void => {
  execFileSync('mount', ['--bind', file, file])
  cleanup(t, () => void execFileSync('umount', [file]))
}

test('a cleanup goes on after a file that cannot be removed, says which it was, and has ended', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const [logs, evidence] = [folderOf(tasked, 'logs'), folderOf(tasked, 'evidence')]
  for (const name of ['one', 'two', 'three']) fs.writeFileSync(path.join(logs, name), name)
  makeUnremovable(t, path.join(logs, 'one'))
  tasked.list(`[tasks.cleanup.logs]\ndirectories = ["${logs}"]\nkeep_newest = 0\nevidence = "${evidence}"\n`)
  const result = await tasked.carryOut({ type: 'cleanup', parameters: { name: 'logs' } })
  assert.deepEqual(
    [result.code, result.evidence?.['removed'], result.evidence?.['left'], result.evidence?.['bytes']],
    ['NOT_DONE', 2, 1, 8],
  )
  assert.match(result.detail ?? '', /1 files? could not be removed.*logs\/one: EBUSY/)
  assert.deepEqual(fs.readdirSync(logs), ['one'])
})

test('a cleanup that fails before it removes anything has ended, and nothing says that it runs', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const [logs, evidence] = [folderOf(tasked, 'logs'), folderOf(tasked, 'evidence')]
  fs.writeFileSync(path.join(logs, 'old'), 'old')
  tasked.list(`[tasks.cleanup.logs]\ndirectories = ["${logs}"]\nkeep_newest = 0\nevidence = "${evidence}"\n`)
  const task = tasked.authority.task({ type: 'cleanup', parameters: { name: 'logs' } })
  fs.mkdirSync(path.join(evidence, `${idOf(task)}.json.new`, 'folder'), { recursive: true })
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'begun' })
  assert.equal((await tasked.ended(idOf(task))).code, 'NOT_DONE')
  assert.deepEqual(fs.readdirSync(logs), ['old'])
})

test('a reboot is remembered before it is asked for, and is done when the machine has another boot', async (t) => {
  let boot = 'first'
  const tasked = taskedHost(t, { reboot: { command: ['/bin/true'], bootId: () => boot } })
  await tasked.learn()
  const task = tasked.authority.task({ type: 'reboot', parameters: {} })
  done(await tasked.begin(task))
  assert.equal((await tasked.look()).tasks[0]?.state, 'running')
  await tasked.host.close()
  const file = path.join(tasked.host.folder, 'state', 'tasks', `${idOf(task)}.json`)
  const record = JSON.parse(fs.readFileSync(file, 'utf8')) as Record<string, unknown>
  assert.deepEqual([record['boot'], record['result']], ['first', null])
  // As the machine finds it: of a helper of the boot before.
  fs.writeFileSync(file, JSON.stringify({ ...record, by: { pid: 1, birth: 'first/1' } }))
  boot = 'second'
  const again = await tasked.restart()
  const result = await again.ended(idOf(task))
  assert.deepEqual([result.code, result.evidence], [null, { boot_before: 'first', boot_after: 'second' }])
  assert.deepEqual(done(await again.begin(task)), { outcome: 'known' })
})

test('a reboot that the system refuses has failed, and one after which the machine is the same is unknown', async (t) => {
  const tasked = taskedHost(t, { reboot: { command: ['/bin/false'], bootId: () => 'first' } })
  await tasked.learn()
  const result = await tasked.carryOut({ type: 'reboot', parameters: {} })
  assert.deepEqual([result.code, result.exit_code], ['PROGRAM_FAILED', 1])
  await tasked.host.close()
  leftBegun(tasked, taskId(500), 'reboot', {})
  assert.equal((await (await tasked.restart()).ended(taskId(500))).code, 'INTERRUPTED')
})

/** What a helper that was killed leaves behind. */
const leftBegun = (
  tasked: TaskedHost,
  id: string,
  type: string,
  parameters: object | null,
  change: { readonly attempts?: number; readonly expires_ms?: number } = {},
): void => {
  const record = {
    ...{ version: 1, id, type, parameters, result: null, forgotten: false, boot: 'first', attempts: 1 },
    ...{ begun_ms: tasked.clock.nowMs(), expires_ms: tasked.clock.nowMs() + hourMs },
    ...{ key: verifierOf(tasked.authority.signer).key, by: { pid: 1, birth: 'gone/1' } },
    ...change,
  }
  fs.writeFileSync(path.join(tasked.host.folder, 'state', 'tasks', `${id}.json`), JSON.stringify(record))
}

const manifest = (tasked: TaskedHost, executable: string, more = ''): string => {
  const file = path.join(tasked.host.folder, 'types', 'x-greet.toml')
  fs.writeFileSync(
    file,
    `executable = "${executable}"
user = "${programUser}"
within = "1m"
${more}
[parameters.name]
type = "string"
required = true
one_of = ["ada", "alan"]
[parameters.times]
type = "integer"
least = 1
most = 3
[parameters.loud]
type = "boolean"
[parameters.words]
type = "strings"
most = 8
`,
    { mode: 0o644 },
  )
  return file
}

test('a type of the host’s own gets its parameters as JSON, as its manifest declares them', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const program = tasked.script('greet', 'echo "$#"; cat')
  const file = manifest(tasked, program)
  const parameters = { name: 'ada', times: 2, loud: true, words: ['a', 'b'] }
  const begin = (given: Record<string, unknown>) =>
    tasked.begin(tasked.authority.task({ type: 'x-greet', parameters: given }))
  const result = await tasked.carryOut({ type: 'x-greet', parameters })
  assert.deepEqual([result.code, result.output?.head], [null, `0\n${JSON.stringify(parameters)}`])
  for (const wrong of [
    {},
    { name: 'eve' },
    { name: 'ada', times: 4 },
    { name: 'ada', times: 1.5 },
    { name: 'ada', loud: 'yes' },
    { name: 'ada', words: ['much too long'] },
    { name: 'ada', more: 1 },
    { name: 'ada', constructor: 1 },
  ])
    refusedAs(await begin(wrong), 'PARAMETERS_INVALID')
  refusedAs(await tasked.begin(tasked.authority.task({ type: 'x-other', parameters: {} })), 'TYPE_NOT_ALLOWED')
  fs.chmodSync(program, 0o777)
  refusedAs(await begin({ name: 'ada' }), 'PATH_UNSAFE')
  fs.chmodSync(program, 0o755)
  fs.chmodSync(file, 0o666)
  refusedAs(await begin({ name: 'ada' }), 'PATH_UNSAFE')
  fs.chmodSync(file, 0o644)
  fs.chmodSync(path.dirname(file), 0o777)
  refusedAs(await begin({ name: 'ada' }), 'PATH_UNSAFE')
  fs.chmodSync(path.dirname(file), 0o755)
  fs.writeFileSync(file, 'executable = "relative"\n')
  refusedAs(await begin({ name: 'ada' }), 'NOT_DONE')
  fs.rmSync(file)
  refusedAs(await begin({ name: 'ada' }), 'PATH_UNSAFE')
})

test('what a killed helper left is unknown, and is begun again where its type may be repeated', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  await tasked.host.close()
  manifest(tasked, tasked.script('greet', 'echo again'), 'repeatable = true')
  leftBegun(tasked, taskId(501), 'run', null)
  leftBegun(tasked, taskId(502), 'x-greet', { name: 'ada' })
  const again = await tasked.restart()
  assert.equal((await again.ended(taskId(501))).code, 'INTERRUPTED')
  const result = await again.ended(taskId(502))
  assert.deepEqual([result.code, result.output?.head], [null, 'again\n'])
})

test('a task that may be repeated is begun three times at most, in its time and by a signer that counts', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  await tasked.host.close()
  manifest(tasked, tasked.script('greet', 'echo again'), 'repeatable = true')
  const nowMs = tasked.clock.nowMs()
  leftBegun(tasked, taskId(503), 'x-greet', { name: 'ada' }, { attempts: 2 })
  leftBegun(tasked, taskId(504), 'x-greet', { name: 'ada' }, { attempts: 3 })
  leftBegun(tasked, taskId(505), 'x-greet', { name: 'ada' }, { expires_ms: nowMs - hourMs })
  const first = await tasked.restart()
  assert.equal((await first.ended(taskId(503))).code, null)
  assert.equal((await first.ended(taskId(504))).code, 'INTERRUPTED')
  assert.equal((await first.ended(taskId(505))).code, 'INTERRUPTED')
  await first.host.close()
  leftBegun(first, taskId(508), 'x-greet', { name: 'ada' })
  // How late it is by a clock that was set back is not known, and nothing proves the time before a statement with a nonce is there.
  first.clock.set(nowMs - 2 * hourMs)
  const again = await first.restart()
  assert.equal((await again.ended(taskId(508))).code, 'INTERRUPTED')
  again.clock.set(nowMs)
  const withdrawn = [verifierOf(again.authority.signer).key]
  const statement = again.authority.statement({ number: 8, verifiers: [], withdrawn })
  assert.deepEqual(done(await again.host.ask('task.learn', { statement })), {})
  await again.host.close()
  leftBegun(again, taskId(506), 'x-greet', { name: 'ada' })
  assert.equal((await (await again.restart()).ended(taskId(506))).code, 'INTERRUPTED')
})

test('each start of a repeated task is counted in its record', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  await tasked.host.close()
  const record = path.join(tasked.host.folder, 'state', 'tasks', `${taskId(507)}.json`)
  manifest(tasked, tasked.script('greet', 'exit 3'), 'repeatable = true')
  leftBegun(tasked, taskId(507), 'x-greet', { name: 'ada' })
  await (await tasked.restart()).ended(taskId(507))
  const kept = JSON.parse(fs.readFileSync(record, 'utf8')) as { attempts: number; by: { pid: number } }
  assert.deepEqual([kept.attempts, kept.by.pid], [2, process.pid])
})

test('a task of the agent is verified and remembered here, and ends when the agent says so', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  const task = tasked.authority.task({ type: 'rotate-recovery', parameters: {} })
  const id = idOf(task)
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'yours' })
  assert.deepEqual(done(await tasked.begin(task)), { outcome: 'known' })
  const again = await tasked.restart()
  assert.equal((await again.look()).tasks[0]?.state, 'running')
  const result = { code: null, exit_code: null, detail: null, output: null, started_at_ms: 1, evidence: { key: 'new' } }
  refusedWith(await again.host.ask('task.ended', { id: taskId(777), ...result }), 'TASK_REFUSED', /^NOT_DONE: /)
  done(await again.host.ask('task.ended', { id, ...result }))
  done(await again.host.ask('task.ended', { id, ...result, code: 'NOT_DONE' }))
  assert.deepEqual((await again.look()).tasks, [{ id, type: 'rotate-recovery', state: 'ended', result }])
  done(await again.host.ask('task.forget', { id }))
  assert.deepEqual((await again.look()).tasks, [])
})

test('a service task does what is listed for that unit and no more', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  tasked.list(`[tasks.services.web]\nunit = "muster-no-such-unit.service"\nactions = ["restart"]\n`)
  const begin = (parameters: Record<string, unknown>) =>
    tasked.begin(tasked.authority.task({ type: 'service', parameters }))
  refusedAs(await begin({ name: 'web', action: 'stop' }), 'NOT_LISTED')
  refusedAs(await begin({ name: 'db', action: 'restart' }), 'NOT_LISTED')
  refusedAs(await begin({ name: 'web', action: 'mask' }), 'PARAMETERS_INVALID')
  const said = await begin({ name: 'web', action: 'restart' })
  if ('code' in said) return refusedAs(said, 'NOT_DONE')
  const [task] = await eventually('it to end', async () => {
    const { tasks } = await tasked.look()
    return tasks.every(({ result }) => result === null) ? null : tasks
  })
  assert.equal(task?.result?.code, 'PROGRAM_FAILED')
})
