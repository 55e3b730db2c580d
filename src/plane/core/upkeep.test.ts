import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { isUpkeepDue, startUpkeep, type UpkeepTask } from './upkeep.ts'

const hour = 3_600_000
/** The tasks of these tests touch none. */
const unused = {} as Store

const setUp = (everyMs: number, work: () => Promise<void> | void = () => {}) => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  let runs = 0
  const run = (): Promise<void> | void => {
    runs++
    return work()
  }
  const task: UpkeepTask = { name: 'it', where: 'each', everyMs, run }
  const cancel = startUpkeep({ store: unused, clock, timers, log: silentLog }, [task])
  /** Time passes, and whatever is under way gets its turns. */
  const pass = async (ms: number): Promise<void> => {
    timers.advance(ms)
    await settled()
  }
  return { clock, pass, cancel, runs: () => runs }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a task runs at its interval', async () => {
  const { pass, runs } = setUp(5_000)
  for (let second = 0; second < 60; second++) await pass(1_000)
  assert.equal(runs(), 12)
})

test('a task of every second runs every second, also when a timer fires a little early', () => {
  const at = (ms: number) => ({ wallMs: ms, monotonicMs: ms })
  assert.equal(isUpkeepDue(1_000, at(0), at(997)), true)
  assert.equal(isUpkeepDue(5_000, at(0), at(4_003)), false)
})

test('a machine that slept, or whose clock was set, does at once what has become due', async () => {
  const { clock, pass, runs } = setUp(hour)
  await pass(1_000)
  assert.equal(runs(), 0)
  clock.set(clock.nowMs() + 9 * hour)
  await pass(1_000)
  assert.equal(runs(), 1)
  clock.set(clock.nowMs() - 9 * hour)
  await pass(1_000)
  assert.equal(runs(), 2)
  await pass(1_000)
  assert.equal(runs(), 2)
})

test('a task that is still under way is not started again, and one that failed is', async () => {
  let finish = (): void => {}
  const { pass, runs } = setUp(1_000, () => new Promise((_resolve, reject) => (finish = () => reject(new Error('no')))))
  await pass(1_000)
  await pass(1_000)
  assert.equal(runs(), 1)
  finish()
  await settled()
  await pass(1_000)
  assert.equal(runs(), 2)
})

test('after it was stopped nothing runs', async () => {
  const { pass, runs, cancel } = setUp(1_000)
  cancel()
  await pass(5_000)
  assert.equal(runs(), 0)
})

test('a task that another replica does by now is no error', async () => {
  const clock = manualClock(1_000_000)
  const timers = manualTimers(clock)
  const said: string[] = []
  const log = {
    ...silentLog,
    info: (_what: unknown, text: string) => void said.push(`info ${text}`),
    error: (_what: unknown, text: string) => void said.push(`error ${text}`),
  } as typeof silentLog
  const run = () => Promise.reject(new StaleReplica('replica 2 leads'))
  startUpkeep({ store: unused, clock, timers, log }, [{ name: 'it', where: 'leader', everyMs: 1000, run }])
  timers.advance(1000)
  await settled()
  assert.deepEqual(said, ['info another replica leads by now'])
})

test('what fails after the end is no error: a plane that stops has closed the store beneath it', async () => {
  const clock = manualClock(0)
  const timers = manualTimers(clock)
  const said: string[] = []
  const log = { ...silentLog, info: () => void said.push('info'), error: () => void said.push('error') }
  let fail = (_error: Error): void => {}
  const run = (): Promise<void> => new Promise((_, reject) => (fail = reject))
  const cancel = startUpkeep({ store: unused, clock, timers, log }, [{ name: 'it', where: 'each', everyMs: 1000, run }])
  for (const end of [() => {}, cancel]) {
    timers.advance(1000)
    await settled()
    end()
    fail(new Error('closed'))
    await settled()
  }
  assert.deepEqual(said, ['error', 'info'])
})
