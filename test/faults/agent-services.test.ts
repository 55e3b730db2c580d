// Services as children of the agent: started, started again, left alone, ended, and found again by the agent after it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunningService, ServiceRunner } from '#agent/fleet/service-runner.ts'
import { openSupervisor } from '#agent/fleet/supervised-runner.ts'
import { wantedServices, type WantedService } from '#agent/fleet/wanted-services.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import { systemTimers } from '#platform/timers.ts'
import { startChild } from '../process/child.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { heart, isAlive, type Heart } from '../process/heart.ts'
import { tempFolder } from '../process/temp-folder.ts'

const supervised = (t: TestContext, state: string, graceMs = 10_000): ServiceRunner => {
  const runner = openSupervisor({ clock: systemClock, timers: systemTimers, log: silentLog }, state, graceMs)
  cleanup(t, () => runner.close())
  return runner
}

const wanted = (state: string, name: string, command: readonly string[]): WantedService => {
  const [service] = wantedServices({ services: [{ name, command }], files: [] }, `${state}/overlay/current`)
  if (service === undefined) throw new Error('no service')
  return service
}

const envOf = (state: string): Record<string, string> => ({
  ...plainEnvironment(),
  MUSTER_OVERLAY: `${state}/overlay/current`,
})

const beating = (it: Heart, than = 0): Promise<number> =>
  eventually('the service to beat', () => (it.beats() > than ? it.pid() : null))

const only = async (runner: ServiceRunner): Promise<RunningService> => {
  const [service, ...more] = await runner.services()
  assert.deepEqual(more, [])
  if (service === undefined) throw new Error('no service')
  return service
}

test('a service that is the same is left alone, one that differs takes its place, and all end when they are asked to', async (t) => {
  const state = tempFolder(t)
  const one = heart(state, 'one')
  const runner = supervised(t, state)
  assert.equal(await runner.ensure(wanted(state, 'app', one.command), envOf(state)), 'started')
  const first = await beating(one)
  assert.equal(await runner.ensure(wanted(state, 'app', one.command), envOf(state)), 'kept')
  assert.deepEqual(one.pids(), [first])
  assert.deepEqual(
    { ...(await only(runner)), digest: '' },
    { name: 'app', digest: '', state: 'running', restarts: 0, pid: first },
  )

  const other = heart(state, 'other')
  assert.equal(await runner.ensure(wanted(state, 'app', other.command), envOf(state)), 'started')
  const second = await beating(other)
  assert.deepEqual([isAlive(first), isAlive(second)], [false, true])
  await runner.stop(['app', 'never heard of'])
  assert.deepEqual([isAlive(second), await runner.services()], [false, []])
})

test('a service gets a clean environment: nothing of what the agent was started with', async (t) => {
  const state = tempFolder(t)
  process.env['MUSTER_JOIN'] = 'a secret'
  cleanup(t, () => void delete process.env['MUSTER_JOIN'])
  const one = heart(state, 'one')
  const runner = supervised(t, state)
  await runner.ensure(wanted(state, 'app', one.command), envOf(state))
  await beating(one)
  const names = Object.keys(one.environment()).filter((name) => !['PWD', '_', 'SHLVL', 'OLDPWD'].includes(name))
  assert.deepEqual(names.sort(), ['HOME', 'LANG', 'MUSTER_OVERLAY', 'PATH'])
})

test('a service that dies is started again, what it had started is gone, and one that keeps dying is said to fail', async (t) => {
  const state = tempFolder(t)
  const one = heart(state, 'one')
  const helper = heart(state, 'helper')
  const runner = supervised(t, state)
  const both = ['/bin/sh', '-c', '"$@" & while :; do sleep 0.1; done', 'pair', ...helper.command]
  await runner.ensure(wanted(state, 'app', one.command), envOf(state))
  await runner.ensure(wanted(state, 'pair', both), envOf(state))
  await runner.ensure(wanted(state, 'broken', ['/bin/false']), envOf(state))
  await runner.ensure(wanted(state, 'missing', ['/no/such/program']), envOf(state))
  const first = await beating(one)
  const follower = await beating(helper)
  const pair = (await runner.services()).find(({ name }) => name === 'pair')?.pid ?? 0
  assert.notEqual(pair, follower)
  for (const pid of [first, pair]) process.kill(pid, 'SIGKILL')
  await eventually('both to be there again', async () => {
    const services = await runner.services()
    const again = services.filter(
      ({ name, pid, restarts }) => ['app', 'pair'].includes(name) && pid !== null && restarts === 1,
    )
    return again.length === 2 && one.pid() !== first && helper.pid() !== follower
  })
  assert.equal(isAlive(follower), false)
  await eventually('two to be called failed', async () => {
    const failed = (await runner.services()).filter(({ state: how }) => how === 'failed')
    return failed.map(({ name }) => name).join() === 'broken,missing'
  })
})

test('one that does not end when it is asked to is killed', async (t) => {
  const state = tempFolder(t)
  const deaf = heart(state, 'deaf', true)
  const runner = supervised(t, state, 500)
  await runner.ensure(wanted(state, 'deaf', deaf.command), envOf(state))
  const pid = await beating(deaf)
  const startedMs = performance.now()
  await runner.close()
  assert.equal(isAlive(pid), false)
  assert.ok(performance.now() - startedMs >= 490, 'it was given its time')
})

test('services of an agent that was killed are adopted by the next: none is started twice, and they end with it', async (t) => {
  const state = tempFolder(t)
  const hearts = ['kept', 'changed', 'unknown'].map((name) => heart(state, name))
  const [kept, changed, unknown] = hearts as [Heart, Heart, Heart]
  const services = hearts.map(({ command }, at) => ({ name: ['kept', 'changed', 'unknown'][at], command }))
  const script = path.join(import.meta.dirname, 'overlay-supervisor.ts')
  const agent = startChild(t, process.execPath, [script, state], { input: JSON.stringify(services) })
  await Promise.all(hearts.map((it) => beating(it)))
  await agent.kill9()
  const before = hearts.map((it) => it.pid())
  assert.ok(before.every(isAlive), 'they outlive it')
  // As if the agent had died between starting it and writing that down.
  const file = path.join(state, 'overlay', 'running.json')
  const written = JSON.parse(fs.readFileSync(file, 'utf8')) as { services: { name: string }[] }
  written.services = written.services.filter(({ name }) => name !== 'unknown')
  fs.writeFileSync(file, JSON.stringify(written))

  const runner = supervised(t, state)
  assert.equal(await runner.ensure(wanted(state, 'kept', kept.command), envOf(state)), 'kept')
  const newer = heart(state, 'newer')
  assert.equal(await runner.ensure(wanted(state, 'changed', newer.command), envOf(state)), 'started')
  assert.equal(await runner.ensure(wanted(state, 'unknown', unknown.command), envOf(state)), 'started')
  await beating(newer)
  await eventually('the unknown one to have a successor', () => unknown.pid() !== before[2])
  assert.deepEqual([kept.pid(), isAlive(before[0] ?? null)], [before[0], true])
  assert.deepEqual([isAlive(before[1] ?? null), isAlive(before[2] ?? null)], [false, false])
  assert.equal(changed.pid(), before[1])

  process.kill(before[0] ?? 0, 'SIGKILL')
  await eventually('the adopted one to be started again', () => kept.pid() !== before[0])
  await runner.close()
  assert.ok([kept, newer, unknown].every((it) => !isAlive(it.pid())))
})
