// A helper that is killed in the middle of a task: the next one ends what is left of it, and says that its effect is unknown.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openHelperClient, type HelperClient } from '#agent/helper/client.ts'
import { unitMark } from '#agent/helper/run-listed.ts'
import { mostProcesses, programName } from '#agent/helper/tasks/prepared-task.ts'
import { openLimiter } from '#platform/limited-process.ts'
import { markOf, stillRuns } from '#platform/process-mark.ts'
import { systemTimers } from '#platform/timers.ts'
import { taskAuthority } from '../fakes/signed-tasks.ts'
import { idOf, programUser } from '../fakes/tasked-host.ts'
import { hostOfPrograms } from '../fakes/host-of-programs.ts'
import { startChild, type Child } from '../process/child.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'

const startTaskedHelper = async (
  t: Scope,
  agentToml: string,
  folder: string,
): Promise<{ child: Child; client: HelperClient }> => {
  const program = path.join(import.meta.dirname, 'tasks-until-killed.ts')
  const child = startChild(t, process.execPath, [program, agentToml, folder], {})
  await eventually('the helper to be ready', () => {
    assert.ok(child.running(), child.stderr())
    return child.stdout().includes('ready')
  })
  const client = openHelperClient(systemTimers, path.join(folder, 'socket'), () => null)
  cleanup(t, () => client.close())
  return { child, client }
}

test('a killed helper runs nothing twice, and leaves nothing running', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const authority = taskAuthority()
  const host = hostOfPrograms(t, Date.now())
  fs.chmodSync(host.folder, 0o755)
  fs.writeFileSync(path.join(host.folder, 'keys.pem'), authority.pem, { mode: 0o644 })
  const runs = path.join(host.folder, 'runs')
  fs.writeFileSync(runs, '')
  fs.chmodSync(runs, 0o666)
  const program = path.join(host.folder, 'program')
  fs.writeFileSync(program, `#!/bin/sh\necho $$ >> ${runs}\nsetsid sleep 600 &\necho $! >> ${runs}\nsleep 601\n`)
  fs.chmodSync(program, 0o755)
  host.allow(`[tasks]
statement_keys = "${host.folder}/keys.pem"
allow = ["run"]
[tasks.run.long]
executable = "${program}"
user = "${programUser}"
`)
  const first = await startTaskedHelper(t, host.agentToml, host.folder)
  const { nonce } = await first.client.ask('task.nonce', {})
  const task = authority.task({ parameters: { name: 'long' } })
  const request = { statement: authority.statement({ nonce }), task }
  assert.deepEqual(await first.client.ask('task.begin', request), { outcome: 'begun' })
  const started = await eventually('the program to run', () => {
    const pids = fs.readFileSync(runs, 'utf8').trim().split('\n').map(Number)
    return pids.length === 2 ? pids.map(markOf) : null
  })
  await first.child.kill9()
  assert.ok(started.every(stillRuns))

  const { client } = await startTaskedHelper(t, host.agentToml, host.folder)
  const { tasks, number } = await client.ask('task.look', {})
  assert.deepEqual(
    tasks.map(({ id, state, result }) => [id, state, result?.code]),
    [[idOf(task), 'ended', 'INTERRUPTED']],
  )
  assert.equal(number, 7)
  await eventually('all of it to end', () => !started.some(stillRuns))
  assert.deepEqual(await client.ask('task.begin', { statement: null, task }), { outcome: 'known' })
  assert.equal(fs.readFileSync(runs, 'utf8').trim().split('\n').length, 2)
})

test('a helper that was killed before it remembered a task leaves nothing that keeps the next one from beginning it', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const authority = taskAuthority()
  const host = hostOfPrograms(t, Date.now())
  fs.chmodSync(host.folder, 0o755)
  fs.writeFileSync(path.join(host.folder, 'keys.pem'), authority.pem, { mode: 0o644 })
  host.allow(`[tasks]
statement_keys = "${host.folder}/keys.pem"
allow = ["run"]
[tasks.run.quick]
executable = "/bin/true"
user = "${programUser}"
`)
  const task = authority.task({ parameters: { name: 'quick' } })
  const group = programName(unitMark(path.resolve(host.agentToml)), idOf(task))
  const left = openLimiter('child')?.prepare(group, { memoryBytes: 2 ** 26, mostProcesses })
  assert.ok(left !== null && left !== undefined)
  cleanup(t, () => left.drop())

  const { client } = await startTaskedHelper(t, host.agentToml, host.folder)
  const { nonce } = await client.ask('task.nonce', {})
  const request = { statement: authority.statement({ nonce }), task }
  assert.deepEqual(await client.ask('task.begin', request), { outcome: 'begun' })
  await eventually('it to end', async () => (await client.ask('task.look', {})).tasks[0]?.result?.exit_code === 0)
})
