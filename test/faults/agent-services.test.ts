// Services as children of the agent: started, started again, left alone, ended, and found again by the agent after it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunningService, ServiceRunner } from '#agent/fleet/service-runner.ts'
import { plainDigest } from '#agent/fleet/secret-digest.ts'
import { openSupervisor } from '#agent/fleet/supervised-runner.ts'
import { usualTerms, wantedServices, type WantedService, type WantedTerms } from '#agent/fleet/wanted-services.ts'
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
  const [service] = wantedServices(
    { services: [{ name, command }], files: [] },
    `${state}/overlay/current`,
    plainDigest,
  )
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
    { name: 'app', digest: '', state: 'running', restarts: 0, pid: first, error: null, output: [], unapplied: [] },
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

const withTerms = (state: string, name: string, command: readonly string[], terms: Partial<WantedTerms>) => ({
  ...wanted(state, name, command),
  terms: { ...usualTerms, ...terms },
})

test('a service that cannot be started fails at once, and one that ends says what it wrote last, without secrets', async (t) => {
  const state = tempFolder(t)
  const runner = supervised(t, state)
  const shout = 'echo first; echo "password is $DB_PASSWORD" >&2; echo "cannot open the database"; exit 3'
  const loud = withTerms(state, 'loud', ['/bin/sh', '-c', shout], { environment: { DB_PASSWORD: 'hunter22' } })
  await runner.ensure(loud, envOf(state))
  await runner.ensure(wanted(state, 'missing', ['/no/such/program']), envOf(state))
  const homeless = withTerms(state, 'homeless', ['/bin/true'], { workingDirectory: '/no/such/folder' })
  await runner.ensure(homeless, envOf(state))
  const failures = await eventually('all of them to fail', async () => {
    const services = await runner.services()
    return services.every(({ state: how }) => how === 'failed') ? services : null
  })
  const [first, second, third] = failures
  assert.deepEqual(
    [first?.error, first?.output.slice(-3)],
    ['ended with exit code 3', ['first', 'password is [secret]', 'cannot open the database']],
  )
  assert.match(second?.error ?? '', /could not be started: .*ENOENT/)
  assert.equal(second?.restarts, 0, 'it was not tried three times before it was said')
  assert.match(third?.error ?? '', /no folder \/no\/such\/folder/)
})

test('terms: its environment, its folder, its limit of open files; what cannot be limited here is named', async (t) => {
  const state = tempFolder(t)
  const runner = supervised(t, state)
  const out = path.join(state, 'out')
  const script = `{ pwd; echo "$GREETING"; ulimit -n; } > ${out}.new && mv ${out}.new ${out}; exec sleep 60`
  const limits = { memoryBytes: 2 ** 30, cpus: 1, openFiles: 64 }
  const terms = { environment: { GREETING: 'hello' }, workingDirectory: state, ...limits }
  await runner.ensure(withTerms(state, 'app', ['/bin/sh', '-c', script], terms), envOf(state))
  await eventually('it to have looked around', () => fs.existsSync(out))
  assert.deepEqual(fs.readFileSync(out, 'utf8').split('\n').slice(0, 3), [state, 'hello', '64'])
  assert.deepEqual((await only(runner)).unapplied, ['limits.memoryBytes', 'limits.cpus'])
  const other = withTerms(state, 'other', ['/bin/true'], { user: 'nobody-else' })
  await assert.rejects(runner.ensure(other, envOf(state)), /has to run as nobody-else: that takes muster-agent-helper/)
})

test('restart: one that may end is left so, and is only called failed if it failed', async (t) => {
  const state = tempFolder(t)
  const runner = supervised(t, state)
  const cases = [
    ['once', '/bin/true', 'never', 'ended'],
    ['bad', '/bin/false', 'never', 'failed'],
    ['good', '/bin/true', 'on-failure', 'ended'],
  ] as const
  for (const [name, program, restart] of cases)
    await runner.ensure(withTerms(state, name, [program], { restart }), envOf(state))
  await eventually('all to be over', async () => (await runner.services()).every(({ pid }) => pid === null))
  assert.deepEqual(
    (await runner.services()).map(({ name, state: how, restarts }) => [name, how, restarts]),
    cases.map(([name, , , how]) => [name, how, 0]),
  )
  assert.equal(await runner.ensure(withTerms(state, 'once', ['/bin/true'], { restart: 'never' }), envOf(state)), 'kept')
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
