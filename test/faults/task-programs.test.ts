// What a task runs on a host: with the limits of agent.toml, and to the end of everything it has started.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { prepareRun } from '#agent/helper/tasks/run-task.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { done, testTrust } from '../fakes/helped-host.ts'
import { taskId } from '../fakes/signed-tasks.ts'
import { idOf, programUser, refusedAs, taskedHost, type TaskedHost } from '../fakes/tasked-host.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'

const listed = (tasked: TaskedHost, name: string, text: string, more = ''): string => `
[tasks.run.${name}]
executable = "${tasked.script(name, text)}"
user = "${programUser}"
${more}`

/** A file that any user may write to. */
const shared = (tasked: TaskedHost, name: string): string => {
  const file = path.join(tasked.host.folder, name)
  fs.writeFileSync(file, '')
  fs.chmodSync(file, 0o666)
  return file
}

test('a program gets its words as they are, its user and its folder, and no shell', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  tasked.list(
    listed(tasked, 'words', 'echo "$# $1 $2 $(id -u) $(pwd) $SECRET"; cat; echo no >&2; exit 3', 'arguments = "any"') +
      listed(tasked, 'fixed', 'echo "$@"', 'arguments = ["--one"]\nworking_directory = "/usr"'),
  )
  const words = ['$(touch /tmp/x); `id`', '| rm -rf']
  const result = await tasked.carryOut({ parameters: { name: 'words', arguments: words } })
  const uid = programUser === 'nobody' ? 65534 : programUser
  assert.equal(result.output?.head, `2 ${words[0]} ${words[1]} ${uid} / \nno\n`)
  assert.deepEqual([result.code, result.exit_code, result.detail], ['PROGRAM_FAILED', 3, 'words failed: exit code 3'])
  assert.equal(result.started_at_ms, tasked.clock.nowMs())
  const fixed = await tasked.carryOut({ parameters: { name: 'fixed' } })
  assert.deepEqual([fixed.code, fixed.output?.head], [null, '--one\n'])
  const other = tasked.authority.task({ parameters: { name: 'fixed', arguments: ['--two'] } })
  refusedAs(await tasked.begin(other), 'NOT_LISTED')
  // What is refused is not remembered.
  assert.deepEqual((await tasked.look()).tasks, [])
})

test('a host that can limit no program runs none', () => {
  const limits = { withinMs: 60_000, memoryBytes: 2 ** 26 }
  const echo = {
    ...limits,
    executable: '/bin/echo',
    user: programUser,
    arguments: 'any',
    workingDirectory: '/',
  } as const
  const tasks = {
    ...{ statementKeys: '/keys', state: null, typesFolder: '/types', allow: ['run'], run: new Map([['echo', echo]]) },
    ...{ services: new Map<never, never>(), files: [], cleanup: new Map<never, never>() },
  }
  const noGroup = { by: 'cgroup2', prepare: () => null, endLeft: () => Promise.resolve() } as const
  for (const limiter of [null, noGroup]) {
    const host = { tasks, trust: testTrust, limiter, runs: 'child', mark: 'test', agentUser: null } as const
    const prepared = prepareRun(host, taskId(1), { name: 'echo' })
    assert.equal(prepared.kind === 'task-refused' && prepared.fault, 'NO_LIMITS')
  }
})

test('what agent.toml does not list, or others could change, is not run', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const begin = (change: Parameters<typeof tasked.authority.task>[0]) => tasked.begin(tasked.authority.task(change))
  const program = listed(tasked, 'hello', 'echo hello')
  tasked.list(program)
  refusedAs(await begin({ parameters: { name: 'other' } }), 'NOT_LISTED')
  refusedAs(await begin({ parameters: { name: 'hello', shell: true } }), 'PARAMETERS_INVALID')
  refusedAs(await begin({ parameters: { name: 'hello', arguments: ['a\0b'] } }), 'NOT_SIGNED')
  refusedAs(await begin({ parameters: {} }), 'PARAMETERS_INVALID')
  refusedAs(await begin({ type: 'collect-diagnostics', parameters: {} }), 'TYPE_NOT_ALLOWED')
  refusedAs(await begin({ type: 'format-disks', parameters: {} }), 'TYPE_NOT_ALLOWED')
  tasked.list(program.replace(/user = .*/, 'user = "no-such-user"'))
  refusedAs(await begin({}), 'NOT_LISTED')
  tasked.list(program)
  const file = path.join(tasked.host.folder, 'hello')
  fs.chmodSync(file, 0o775)
  refusedAs(await begin({}), 'PATH_UNSAFE')
  fs.rmSync(file)
  refusedAs(await begin({}), 'PATH_UNSAFE')
  assert.deepEqual((await tasked.look()).tasks, [])
})

test('a program that hangs, forks and ignores SIGTERM ends with all it started', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const pids = shared(tasked, 'pids')
  // The second child leaves the process group and the session, which only the control group notices.
  const text = `trap '' TERM; sleep 600 & setsid sh -c 'trap "" TERM; echo $$ >> ${pids}; while :; do sleep 600; done' &
echo $$ >> ${pids}; echo $! >> ${pids}; while :; do wait; done`
  tasked.list(listed(tasked, 'hang', text, 'within = "1s"'))
  const result = await tasked.carryOut({ parameters: { name: 'hang' } })
  assert.deepEqual([result.code, result.detail], ['TIMED_OUT', 'hang was ended after 1 s'])
  const started = fs.readFileSync(pids, 'utf8').trim().split('\n').map(Number)
  assert.ok(started.length >= 2)
  await eventually('all of it to end', () => !started.some((pid) => stillRuns({ pid, birth: null })))
})

test('what a program leaves behind ends with it', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const pids = shared(tasked, 'pids')
  tasked.list(listed(tasked, 'leaves', `setsid sleep 600 & echo $! > ${pids}; echo left`))
  const result = await tasked.carryOut({ parameters: { name: 'leaves' } })
  assert.deepEqual([result.code, result.output?.head], [null, 'left\n'])
  const pid = Number(fs.readFileSync(pids, 'utf8'))
  await eventually('it to end', () => !stillRuns({ pid, birth: null }))
})

test('of endless output the beginning and the end are kept, and it is counted', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  tasked.list(
    listed(tasked, 'much', String.raw`echo first; head -c 40000000 /dev/zero; printf '\033[31mlast\377'`) +
      listed(tasked, 'endless', 'exec yes', 'within = "1s"'),
  )
  const { code, output } = await tasked.carryOut({ parameters: { name: 'much' } })
  assert.equal(code, null)
  assert.equal(output?.bytes, 40_000_016)
  assert.ok(output.head.startsWith('first\n\ufffd\ufffd'))
  assert.ok(output.tail.endsWith('\ufffd[31mlast\ufffd'), JSON.stringify(output.tail.slice(-20)))
  assert.deepEqual([output.head.length, output.tail.length], [8192, 8192])
  const endless = await tasked.carryOut({ parameters: { name: 'endless' } })
  assert.equal(endless.code, 'TIMED_OUT')
  assert.ok((endless.output?.bytes ?? 0) > 16_384)
})

test('a program that takes more memory or processes than it may have is ended', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const bomb = 'while :; do sleep 600 & done'
  tasked.list(listed(tasked, 'eat', 'exec tail /dev/zero', 'memory = "32M"') + listed(tasked, 'fork', bomb))
  const result = await tasked.carryOut({ parameters: { name: 'eat' } })
  assert.equal(result.code, 'PROGRAM_FAILED')
  assert.match(result.detail ?? '', /more than its 32 MiB of memory/)
  const forked = await tasked.carryOut({ parameters: { name: 'fork' } })
  assert.equal(forked.code, 'PROGRAM_FAILED')
  assert.match(forked.output?.head ?? '', /fork/i)
})

test('a helper that ends ends what it runs, and says that the effect is unknown', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  const pids = shared(tasked, 'pids')
  tasked.list(listed(tasked, 'sleep', `echo $$ > ${pids}; exec sleep 600`))
  const task = tasked.authority.task({ parameters: { name: 'sleep' } })
  done(await tasked.begin(task))
  const pid = await eventually('it to run', () => Number(fs.readFileSync(pids, 'utf8')) || null)
  const again = await tasked.restart()
  await eventually('it to end', () => !stillRuns({ pid, birth: null }))
  assert.equal((await again.ended(idOf(task))).code, 'INTERRUPTED')
  assert.deepEqual(done(await again.begin(task)), { outcome: 'known' })
})

test('more than eight tasks at a time are refused and can be sent again', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const tasked = taskedHost(t)
  await tasked.learn()
  tasked.list(listed(tasked, 'sleep', 'exec sleep 600'))
  const tasks = Array.from({ length: 9 }, () => tasked.authority.task({ parameters: { name: 'sleep' } }))
  for (const task of tasks.slice(0, 8)) done(await tasked.begin(task))
  refusedAs(await tasked.begin(tasks[8] ?? ''), 'HELPER_BUSY')
  assert.equal((await tasked.look()).tasks.length, 8)
})
