// Started by task-crowd.ts and killed by its tests: some nodes, each with a helper of its own in this process. Reads its order from
// standard input.

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { text } from 'node:stream/consumers'
import { fullJitterMs } from '#agent/core/backoff.ts'
import { openVerbs } from '#agent/helper/perform-verb.ts'
import { readRefusal, type HostResult } from '#agent/helper/tasks/task-verbs.ts'
import type { AnswerOf, RequestOf, Verb } from '#agent/helper/verbs.ts'
import { systemClock, isoTime } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { parseStatement } from '#wire/core/statement.ts'
import type { TaskFault } from '#wire/tasks/task-faults.ts'
import { mostHeld, tasksCapability } from '#wire/tasks/task-frames.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { nodeCall, type NodeTarget } from './node-call.ts'
import type { Json, Reply } from './operator-call.ts'
import { openRawChannel, type RawChannel } from './raw-channel.ts'
import { rawEvidence } from './raw-recovery.ts'
import type { CrowdOrder } from './task-crowd.ts'

const lookEveryMs = 100
const idleLookEveryMs = 2_000
const firstWaitMs = 200
const longestWaitMs = 5_000
const pollSeconds = 10

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const backOff = (failures: number): Promise<void> =>
  pause(fullJitterMs(failures, firstWaitMs, longestWaitMs, systemRandom.unit()))

/** As an agent has it. */
const newerMayHelp: ReadonlySet<TaskFault> = new Set([
  'STATEMENT_MISSING',
  'STATEMENT_EXPIRED',
  'STATEMENT_OLDER',
  'STATEMENT_OF_ANOTHER',
  'FRESH_STATEMENT_NEEDED',
  'SIGNER_UNKNOWN',
])

/** Of a plane that has a result, or will take none. */
const finalCodes: ReadonlySet<string> = new Set(['TASK_ALREADY_ENDED', 'TASK_NOT_FOUND', 'TASK_NOT_YOURS'])

type Said<V extends Verb> = { readonly answer: AnswerOf<V> } | { readonly refused: { readonly message: string } }

const { targets, nodes, refusals, envelopes }: CrowdOrder = JSON.parse(await text(process.stdin))
/** Random for each process, as an agent's. */
const evidence = rawEvidence(randomBytes(8).toString('hex'))
const noteRefusal = (line: string): void => fs.appendFileSync(refusals, `${line}\n`)

const live = async (node: CrowdOrder['nodes'][number], first: number): Promise<void> => {
  const { id, identity, folder, takes } = node
  const verbs = openVerbs(
    { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust },
    { agentToml: path.join(folder, 'agent.toml'), agentUser: null, stateFolder: path.join(folder, 'helper') },
    'child',
  )
  const ask = async <V extends Verb>(verb: V, body: RequestOf<V>): Promise<Said<V>> =>
    JSON.parse(await verbs.perform(JSON.stringify({ id: 1, verb, body })))
  const asked = async <V extends Verb>(verb: V, body: RequestOf<V>): Promise<AnswerOf<V>> => {
    const said = await ask(verb, body)
    if ('refused' in said) throw new Error(`${id}: ${verb}: ${said.refused.message}`)
    return said.answer
  }

  /** At one plane after the other until it is answered for good. */
  const insist = async (method: 'GET' | 'POST', route: string, body: object): Promise<Reply> => {
    for (let failures = 0, at = first; ; failures++, at++) {
      const target = targets[at % targets.length] as NodeTarget
      const reply = await nodeCall(target, identity, method, `/v1/nodes/${id}/${route}`, body, evidence).catch(
        () => null,
      )
      if (reply !== null && (reply.status < 300 || reply.status === 400 || finalCodes.has(reply.body.code)))
        return reply
      await backOff(failures)
    }
  }
  const freshStatement = async (): Promise<string> => {
    const { nonce } = await asked('task.nonce', {})
    return (await insist('POST', 'task-verifiers', { nonce })).body.statement
  }

  const underWay = new Set<string>()
  let wake = (): void => {}
  const begin = async (task: string): Promise<void> => {
    const says = parseStatement('task', task)?.value
    const taskId = says?.id ?? 'unreadable'
    fs.appendFileSync(envelopes, `${taskId} ${says?.counter}\n`)
    if (underWay.has(taskId)) return
    underWay.add(taskId)
    try {
      for (let statement: string | null = null; ;) {
        const said: Said<'task.begin'> = await ask('task.begin', { statement, task })
        if ('answer' in said) return wake()
        const { fault } = readRefusal(said.refused.message)
        if (newerMayHelp.has(fault)) statement = await freshStatement()
        else if (fault === 'HELPER_BUSY') await pause(lookEveryMs)
        // It was on its way again when the plane took its result.
        else if (fault === 'SEEN_BEFORE') return
        else return noteRefusal(`${taskId} ${said.refused.message}`)
      }
    } finally {
      underWay.delete(taskId)
    }
  }

  const sendResults = async (): Promise<void> => {
    for (;;) {
      const { tasks } = await asked('task.look', {})
      for (const task of tasks) {
        if (task.result === null) continue
        const reply = await insist('POST', `tasks/${task.id}/result`, resultBody(task.result))
        if (reply.status >= 300) noteRefusal(`${task.id} ${JSON.stringify(reply.body)}`)
        await asked('task.forget', { id: task.id })
      }
      const woken = new Promise<void>((resolve) => (wake = resolve))
      await (tasks.length > 0 ? pause(lookEveryMs) : Promise.race([woken, pause(idleLookEveryMs)]))
    }
  }

  const serve = async (channel: RawChannel): Promise<void> => {
    const { number, tasks } = await asked('task.look', {})
    const held = tasks.slice(0, mostHeld).map((task) => task.id)
    channel.send('tasks_state', { verifiers: number ?? 0, held })
    for (let read = 0; !channel.ended(); await pause(lookEveryMs)) {
      for (; read < channel.frames.length; read++) {
        const frame: Json = channel.frames[read]
        if (frame.type === 'task') void begin(frame.body.task)
      }
    }
  }
  const hello = { agent_version: 'crowd', capabilities: [tasksCapability], config_revision: 0, trust_revision: 0 }
  const keepChannel = async (): Promise<never> => {
    for (let failures = 0, at = first; ; at++) {
      const target = targets[at % targets.length] as NodeTarget
      const channel = await openRawChannel(target, identity, id, { hello, evidence }).catch(() => null)
      if (channel !== null && 'frames' in channel) {
        failures = 0
        await serve(channel)
      } else await backOff(failures++)
    }
  }
  const keepPolling = async (target: NodeTarget): Promise<never> => {
    for (let failures = 0; ;) {
      const route = `/v1/nodes/${id}/tasks/wait?wait=${pollSeconds}`
      const reply = await nodeCall(target, identity, 'GET', route, undefined, evidence).catch(() => null)
      failures = reply?.status === 200 ? 0 : failures + 1
      for (const { task } of reply?.body.tasks ?? []) void begin(task)
      if (failures > 0) await backOff(failures)
    }
  }

  await verbs.takeUpTasks()
  // As an agent does before it asks for tasks: a helper takes none from before its memory begins.
  if ((await asked('task.look', {})).number === null) await asked('task.learn', { statement: await freshStatement() })
  void sendResults()
  if (takes === 'channel') void keepChannel()
  else for (const target of targets) void keepPolling(target)
}

const resultBody = ({ started_at_ms: startedAtMs, ...rest }: HostResult) => ({
  ...rest,
  state: rest.code === null ? 'completed' : rest.code === 'INTERRUPTED' ? 'unknown' : 'failed',
  started_at: startedAtMs === null ? null : isoTime(startedAtMs),
})

for (const [at, node] of nodes.entries()) await live(node, at)
console.log('ready')
