// What a task costs the plane, and how soon its node begins with it. Nodes with channels take tasks and answer them as agents do, each
// result on a connection of its own; between the tasks other nodes enroll, so that both meet the same machine. Then one real agent
// with its helper runs a program again and again, and between two runs a channel of the same plane is pinged.
//
//     npm run bench tasks -- --tasks 2000

import { parseStatement } from '#wire/core/statement.ts'
import { tasksCapability } from '#wire/tasks/task-frames.ts'
import { within } from '../test/process/eventually.ts'
import { activeNode } from '../test/process/active-node.ts'
import { newSecret } from '../test/process/plane-records.ts'
import type { Json } from '../test/process/operator-call.ts'
import type { RawChannel } from '../test/process/raw-channel.ts'
import { rawNode, type RawNode } from '../test/process/raw-node.ts'
import { startPlane, type Plane } from '../test/process/start-plane.ts'
import { endOfTask, queueTask, startTaskHost } from '../test/process/task-host.ts'
import { benchRun } from './bench-run.ts'
import { inParallel } from './in-parallel.ts'
import { cpuMs } from './process-cost.ts'
import { benchOptions, wrongOption } from './options.ts'

// npm takes `--tasks N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = benchOptions({ options: { tasks: { type: 'string' } }, allowPositionals: true })
const tasks = Number(values.tasks ?? positionals[0] ?? 2000)
if (!Number.isInteger(tasks) || tasks < 100) wrongOption('--tasks takes a number from 100 on')

const nodes = 20
const steps = 4
const atOnce = 16
/** The first of each pay for compilation. */
const warmUp = 200
const rounds = 100
const withinMs = 600_000
const lookEveryMs = 2

const result = {
  ...{ state: 'completed', code: null, exit_code: 0, detail: null, started_at: null, evidence: null },
  output: { head: 'done\n', tail: '', bytes: 5 },
}

type Phase = { readonly done: number; readonly cpuMs: number; readonly ms: number }

await benchRun(async (t) => {
  const plane = await startPlane(t, { args: ['--log-level', 'warn'] })
  const limits = { strangersPerMinute: 1e6, strangersPerMinutePerSource: 1e6, 'tasks.run': true }
  const { status, body } = await plane.api('PATCH', '/v1/domain', { set: limits })
  if (status >= 300) throw new Error(`the domain was not set: ${JSON.stringify(body)}`)
  await measureCost(plane)
  const host = await startTaskHost(t, plane, 'host')
  await measureLatency(plane, host.id)
})

async function measureCost(plane: Plane): Promise<void> {
  const takers = await Promise.all(Array.from({ length: nodes }, (_, at) => taker(plane, `taker-${at}`)))
  let enrolled = 0
  const runTasks = async (count: number): Promise<void> => {
    const ended = Promise.all(takers.map((one, at) => one.ends(Math.ceil((count - at) / nodes))))
    await inParallel(atOnce, count, async (at) => {
      await queueTask(plane, `taker-${at % nodes}`, 'collect-diagnostics')
    })
    await within(`${count} tasks to be answered`, withinMs, ended)
  }
  const target = await plane.target()
  const enroll = async (secrets: readonly string[]): Promise<void> =>
    inParallel(atOnce, secrets.length, async (at) => {
      const { status, body } = await rawNode(target, 'p256').enrollByToken(secrets[at] ?? '')
      if (status !== 200) throw new Error(`not enrolled: ${JSON.stringify(body)}`)
    })
  const secretsFor = (count: number): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, () => newSecret(plane, `enrolling-${enrolled++}`)))

  await runTasks(warmUp)
  await enroll(await secretsFor(warmUp))
  let ofTasks: Phase = { done: 0, cpuMs: 0, ms: 0 }
  let ofEnrollments = ofTasks
  for (let step = 0; step < steps; step++) {
    const count = Math.floor((tasks * (step + 1)) / steps) - Math.floor((tasks * step) / steps)
    ofTasks = together(ofTasks, await costOf(plane, count, () => runTasks(count)))
    const secrets = await secretsFor(count)
    ofEnrollments = together(ofEnrollments, await costOf(plane, count, () => enroll(secrets)))
  }
  for (const one of takers) one.leave()
  console.log(`tasks: ${tasks} on ${nodes} channels, and as many enrollments, in ${steps} turns each`)
  printPhase('tasks', ofTasks)
  printPhase('enrollments', ofEnrollments)
  const ratio = perCpuSecond(ofTasks) / perCpuSecond(ofEnrollments)
  console.log(`ratio            ${ratio.toFixed(2)} tasks for the CPU of one enrollment`)
}

async function costOf(plane: Plane, done: number, run: () => Promise<void>): Promise<Phase> {
  const [cpuBeforeMs, startedMs] = [cpuMs(plane.pid), performance.now()]
  await run()
  return { done, cpuMs: cpuMs(plane.pid) - cpuBeforeMs, ms: performance.now() - startedMs }
}

function together(one: Phase, other: Phase): Phase {
  return { done: one.done + other.done, cpuMs: one.cpuMs + other.cpuMs, ms: one.ms + other.ms }
}

function perCpuSecond(phase: Phase): number {
  return (phase.done / phase.cpuMs) * 1000
}

function printPhase(label: string, phase: Phase): void {
  const each = (phase.cpuMs / phase.done).toFixed(2)
  const aSecond = (phase.done / phase.ms) * 1000
  console.log(
    `${label.padEnd(16)} ${perCpuSecond(phase).toFixed(0)} a CPU second of the plane (${each} ms each); ${aSecond.toFixed(0)} a second`,
  )
}

type Taker = {
  /** Resolves when so many more tasks have been answered. */
  ends(count: number): Promise<void>
  leave(): void
}

/** A node that answers every task at once. */
async function taker(plane: Plane, id: string): Promise<Taker> {
  const node = await activeNode(plane, id)
  const channel = await openChannel(node, [tasksCapability])
  channel.send('tasks_state', { verifiers: 1, held: [] })
  let answered = 0
  let over = false
  const answer = async ({ task }: Json): Promise<void> => {
    const taskId = parseStatement('task', task)?.value.id
    const { status, body } = await node.call('POST', `/v1/nodes/${id}/tasks/${taskId}/result`, result)
    if (status !== 200) throw new Error(`${taskId} was not taken: ${JSON.stringify(body)}`)
    answered++
  }
  void (async () => {
    for (let read = 0; !over; await new Promise((resolve) => setTimeout(resolve, lookEveryMs)))
      for (; read < channel.frames.length; read++) {
        const frame: Json = channel.frames[read]
        if (frame.type === 'task') void answer(frame.body)
      }
  })()
  return {
    ends: async (count) => {
      const wanted = answered + count
      while (answered < wanted) await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
    },
    leave: () => {
      over = true
      channel.destroy()
    },
  }
}

async function openChannel(node: RawNode, capabilities: readonly string[]): Promise<RawChannel> {
  const hello = { agent_version: 'bench', capabilities, config_revision: 0, trust_revision: 0 }
  const channel = await node.openChannel({ hello })
  if (!('frames' in channel)) throw new Error(`no channel: ${JSON.stringify(channel.body)}`)
  return channel
}

async function measureLatency(plane: Plane, host: string): Promise<void> {
  const channel = await openChannel(await activeNode(plane, 'pinging'), [])
  const starts: number[] = []
  const trips: number[] = []
  for (let round = -5; round < rounds; round++) {
    const trip = await roundTripMs(channel)
    const start = await queueToStartMs(plane, host)
    if (round < 0) continue
    trips.push(trip)
    starts.push(start)
  }
  channel.destroy()
  console.log(`\nstart: ${rounds} tasks of one agent, one after the other, and as many pings of a channel in turns`)
  printTimes('queue to start', starts)
  printTimes('round trip', trips)
  console.log(
    `ratio            ${(at(starts, 0.5) / at(trips, 0.5)).toFixed(1)} round trips from queue to start, in the median`,
  )
}

async function roundTripMs(channel: RawChannel): Promise<number> {
  const before = channel.pongsReceived()
  const startedMs = performance.now()
  channel.sendPing()
  while (channel.pongsReceived() === before) await new Promise((resolve) => setImmediate(resolve))
  return performance.now() - startedMs
}

/** By the clock that both have: the helper says when it started the program. */
async function queueToStartMs(plane: Plane, host: string): Promise<number> {
  const queuedAtMs = performance.timeOrigin + performance.now()
  const task = await endOfTask(plane, await queueTask(plane, host, 'run', { name: 'quick' }))
  if (task.state !== 'completed') throw new Error(`a task was not completed: ${JSON.stringify(task)}`)
  return Date.parse(task.result.started_at) - queuedAtMs
}

function at(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? NaN
}

function printTimes(label: string, times: readonly number[]): void {
  const [p50, p90, max] = [0.5, 0.9, 1].map((part) => at(times, part).toFixed(1))
  console.log(`${label.padEnd(16)} p50 ${p50} ms, p90 ${p90} ms, max ${max} ms`)
}
