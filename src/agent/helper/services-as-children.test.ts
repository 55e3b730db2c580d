import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { testTrust } from '../../../test/fakes/helped-host.ts'
import { cleanup } from '../../../test/process/cleanup.ts'
import { eventually } from '../../../test/process/eventually.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { silentLog, type Log } from '#platform/log.ts'
import { markOf, stillRuns, type ProcessMark } from '#platform/process-mark.ts'
import { startUserProcess } from '#platform/user-process.ts'
import type { ServiceHost, ServiceOrder } from './listed-services.ts'
import { openRunningChildren, type RunningChildren } from './running-children.ts'
import { servicesAsChildren } from './services-as-children.ts'

const order = (command: readonly string[], restart: ServiceOrder['restart']): ServiceOrder => ({
  ...{ name: 'app', digest: '0123456789abcdef', listing: '0'.repeat(16), env: {}, cwd: '/', user: null },
  limits: { memoryBytes: null, cpus: null, openFiles: null },
  command,
  restart,
})
const noChildren: RunningChildren = { note: () => {}, left: () => [] }
/** Longer than the kernel takes: Node throws where it is to be started. */
const impossible = ['/bin/true', 'x'.repeat(300_000)]

const ended = async (services: ServiceHost) =>
  eventually('it to have ended', async () => {
    const [service] = await services.status()
    return service?.state === 'ended' && service.ended !== null ? service : null
  })

test('a service whose start the system refuses is tried again by its policy, and says why', async () => {
  const clock = manualClock(0)
  const services = servicesAsChildren(manualTimers(clock), noChildren, silentLog)
  assert.equal(await services.start(order(impossible, 'always')), 'started')
  for (const restarts of [1, 2, 3]) {
    const service = await ended(services)
    assert.match(service.ended ?? '', /could not be started: E2BIG/)
    assert.equal(service.restarts, restarts)
    clock.advance(60_000)
    await eventually('its next start', async () => ((await services.status())[0]?.restarts ?? 0) > restarts)
  }
  await services.close()
})

test('the log says when a service is started, ends by itself, and is stopped', async () => {
  const said: string[] = []
  const say = ({ how }: { readonly how?: string }, text: string): void => void said.push(`${text} ${how ?? ''}`.trim())
  const clock = manualClock(0)
  const log = { ...silentLog, info: say, warn: say } as unknown as Log
  const services = servicesAsChildren(manualTimers(clock), noChildren, log)
  await services.start(order(['/bin/sh', '-c', 'exit 3'], 'always'))
  await ended(services)
  await services.start({ ...order(['/bin/sleep', '600'], 'always'), digest: 'fedcba9876543210' })
  await services.close()
  assert.deepEqual(said, [
    'a service was started',
    'a service has ended; it is started again exit code 3',
    'a service was started',
    'a service was stopped ended by SIGTERM',
  ])
})

test('one that is left as it ended is not started by being asked for again, and one that waits for its restart is not hurried', async () => {
  const services = servicesAsChildren(manualTimers(manualClock(0)), noChildren, silentLog)
  await services.start(order(['/bin/true'], 'never'))
  assert.equal((await ended(services)).ended, 'exit code 0')
  assert.equal(await services.start(order(['/bin/true'], 'never')), 'kept')
  const other = { ...order(['/bin/false'], 'always'), digest: 'fedcba9876543210' }
  assert.equal(await services.start(other), 'started')
  assert.equal((await ended(services)).restarts, 1)
  assert.equal(await services.start(other), 'kept')
  assert.equal(await services.start({ ...other, listing: '1'.repeat(16) }), 'started', 'agent.toml lists another one')
  await services.close()
})

test('a helper ends what one before it has left, when that was killed, and starts nothing before', async (t) => {
  const folder = tempFolder(t)
  const orphan = startUserProcess({ command: ['/bin/sleep', '600'], user: null, cwd: '/', env: {} })
  cleanup(t, () => orphan.stop(0))
  const left = markOf(orphan.pid ?? assert.fail())
  const [alive, gone] = [markOf(process.pid), { pid: process.pid, birth: 'another boot/1' }]
  openRunningChildren(folder, testTrust, silentLog, alive).note([left])
  assert.deepEqual(openRunningChildren(folder, testTrust, silentLog).left(), [], 'it is there, and has them')
  openRunningChildren(folder, testTrust, silentLog, gone).note([left, { ...left, birth: 'another boot/1' }])
  const children = openRunningChildren(folder, testTrust, silentLog)
  const services = servicesAsChildren(manualTimers(manualClock(0)), children, silentLog)
  cleanup(t, () => services.close())
  assert.equal(await services.start(order(['/bin/sleep', '600'], 'never')), 'started')
  assert.ok(!stillRuns(left))
  const pid = (await services.status())[0]?.pid
  const kept = JSON.parse(fs.readFileSync(path.join(folder, 'children.json'), 'utf8')) as {
    children: { pid: number }[]
  }
  assert.deepEqual(
    kept.children.map((child) => child.pid),
    [pid],
  )
})

test('one that a helper before has left and that cannot be ended is named, and keeps no service from starting', async (t) => {
  // It is in the process group of the test: signals to a group of its own do not reach it.
  const stuck = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  cleanup(t, () => void stuck.kill('SIGKILL'))
  const mark = markOf(stuck.pid ?? assert.fail())
  const noted: (readonly ProcessMark[])[] = []
  const said: unknown[] = []
  const log = { ...silentLog, error: (fields: unknown) => void said.push(fields) }
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const services = servicesAsChildren(
    timers,
    { note: (marks) => void noted.push(marks), left: () => [mark] },
    log as Log,
  )
  cleanup(t, () => services.close())
  const started = services.start(order(['/bin/sleep', '600'], 'never'))
  timers.advance(15_000)
  assert.equal(await started, 'started')
  assert.deepEqual(said, [{ pid: mark.pid }])
  const pid = (await services.status())[0]?.pid
  assert.deepEqual(
    noted.at(-1)?.map((one) => one.pid),
    [mark.pid, pid],
    'the next helper tries it again',
  )
  assert.ok(stillRuns(mark))
})
