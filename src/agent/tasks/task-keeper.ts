// The tasks of this node while its host takes them: each is brought to the helper, its result to the plane, and forgotten once the plane
// has it. The memory of all this is the helper's, which outlives the agent: a process that starts finds there what is running and what
// ended. What a helper refused is remembered by the plane, which sends it again.

import { isoTime } from '#platform/clock.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { pause } from '#agent/core/pause.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { RecoveryRotation } from '#agent/state/recovery-rotation.ts'
import { mostHeld } from '#wire/tasks/task-frames.ts'
import { beginTask, readTask, type ReceivedTask } from './begin-task.ts'
import { ended, type HeldTask, type HostResult, type TaskHelper } from './helped-tasks.ts'
import { carryOut, isOwnType } from './own-types.ts'
import { openResults } from './post-results.ts'
import { openTaskFiles } from './task-files.ts'
import type { TaskingAgent, TasksSender } from './task-link.ts'
import { openVerifiers } from './verifiers.ts'

export type TaskKeeper = {
  use(sender: TasksSender | null): void
  received(task: string): void
  announced(number: number): void
  /** Until the agent is stopped. */
  run(): Promise<void>
}

/** The plane sends a node no more than 4 at a time; others wait there. */
const mostReceived = 16
const shortestLookMs = 50
const longestLookMs = 2_000
/** While nothing runs: a helper that was started anew may have something to say. */
const idleLookMs = 60_000
const awayLookMs = 2_000

export const openTaskKeeper = (
  agent: TaskingAgent,
  identityNow: () => Identity,
  helper: TaskHelper,
  rotation: RecoveryRotation,
): TaskKeeper => {
  const { clock, timers, record, log, signal } = agent
  const bugs = Promise.withResolvers<never>()
  const received = new Map<string, ReceivedTask>()
  /** What this process itself carries out, and what it has carried out as long as the helper has it. */
  const carried = new Map<string, 'under-way' | 'over'>()
  const files = openTaskFiles(agent, identityNow)
  const statements = openVerifiers(agent, identityNow, helper, () => lookNow())
  const results = openResults(
    agent,
    identityNow,
    (id) => helper.forget(id),
    () => lookNow(),
  )
  let held: readonly HeldTask[] = []
  let sender: TasksSender | null = null
  /** What was last sent on the channel in use. */
  let said: number | null = null
  /** What the plane sends before the helper has a statement would be refused as older than it. */
  let isReady = false
  let readying: Promise<void> | null = null
  /** It takes no statement of this plane: the refusal of each task says so. */
  let takesNone = false
  /** Of the statement that the helper was given last without a task for it. */
  let given: number | null = null
  let begunAtMs = clock.monotonicMs()
  let wake = new AbortController()
  let shown: readonly ShownTask[] = []

  const lookNow = (): void => wake.abort()
  const show = (): void => {
    const running = held.filter(({ state }) => state === 'running')
    const now = [
      ...[...received.values()].map(({ says }) => ({ id: says.id, type: says.type, state: 'received' as const })),
      ...running.map(({ id, type }) => ({ id, type, state: 'running' as const })),
      ...results.waiting().map(({ id, type }) => ({ id, type, state: 'ended' as const })),
    ]
    const next = now.map((task) => ({ ...task, since: sinceOf(shown, task) ?? isoTime(clock.nowMs()) }))
    if (JSON.stringify(next) !== JSON.stringify(shown)) record.facts({ tasks: next })
    shown = next
  }
  const say = (): void => {
    const verifiers = statements.number()
    // Without a statement no task could be begun: they wait at the plane.
    if (sender === null || !isReady || verifiers === null || said === verifiers) return
    said = verifiers
    const ids = [...new Set([...received.keys(), ...held.map(({ id }) => id)])]
    sender.tasksState({ verifiers, held: ids.slice(0, mostHeld) })
  }

  const begin = async (task: ReceivedTask): Promise<void> => {
    const { id, type } = task.says
    const outcome = await beginTask(agent, { helper, statements, files }, task)
    if (outcome === null) return
    switch (outcome.kind) {
      case 'refused':
        received.delete(id)
        log.warn({ task: id, type, code: outcome.fault }, `a task was refused: ${outcome.why}`)
        record.changed('tasks', outcome.fault, `Task ${id} (${type}) was refused: ${outcome.why}`)
        results.add(id, type, { begun: false, ...ended(outcome.fault, outcome.why) })
        return lookNow()
      case 'begun':
      case 'yours':
        log.info({ task: id, type }, 'a task was begun')
        record.changed('tasks', 'begun', `Task ${id} (${type}) was begun.`)
        record.count({ kind: 'task', event: 'begun' })
        if (outcome.kind === 'yours') await carry(task)
        break
      case 'known':
        break
      case 'left':
        log.warn({ task: id, type }, `a task is left to the plane: ${outcome.why}`)
        break
    }
    received.delete(id)
    begunAtMs = clock.monotonicMs()
    lookNow()
  }
  const carry = async (task: ReceivedTask): Promise<void> => {
    const { id } = task.says
    carried.set(id, 'under-way')
    received.delete(id)
    const result = await carryOut(agent, rotation, task.says)
    await sayEnded(id, result)
    carried.set(id, 'over')
  }
  const sayEnded = async (id: string, result: HostResult): Promise<void> => {
    while (!signal.aborted && (await helper.ended(id, result)) === null) await pause(timers, awayLookMs, signal)
  }

  const makeReady = async (): Promise<void> => {
    const statement = await statements.fresh()
    const outcome = statement === null ? null : await helper.learn(statement)
    takesNone = outcome === 'refused'
    if (outcome !== null) lookNow()
  }

  /** A withdrawal has to reach the helper though no task comes: what was interrupted is not begun again for a signer that is withdrawn. */
  const passOn = async (): Promise<void> => {
    const statement = await statements.current()
    if (statement === null || (await helper.learn(statement)) === null) given = null
  }

  /** How long until the next look. */
  const look = async (): Promise<number> => {
    const now = await helper.look()
    if (now === null) return awayLookMs
    held = now.tasks
    isReady = now.number !== null || takesNone
    if (!isReady)
      readying ??= makeReady()
        .catch(bugs.reject)
        .finally(() => (readying = null))
    const newest = statements.number()
    if (now.number !== null && newest !== null && newest > now.number && newest !== given) {
      given = newest
      passOn().catch(bugs.reject)
    }
    for (const [id, how] of carried) if (how === 'over' && !held.some((one) => one.id === id)) carried.delete(id)
    for (const { id, type, state } of held) {
      const isOurs = state === 'running' && isOwnType(type)
      // Of a process of this agent that is no more: whether it had an effect is not known.
      if (isOurs && !carried.has(id) && !received.has(id)) await sayEnded(id, interrupted)
    }
    for (const { id, type, result } of held) if (result !== null) results.add(id, type, { begun: true, ...result })
    files.keepOnly([...received.keys(), ...held.filter(({ state }) => state === 'running').map(({ id }) => id)])
    say()
    show()
    if (held.some(({ state }) => state === 'running')) return paceMs(clock.monotonicMs() - begunAtMs)
    return isReady ? idleLookMs : awayLookMs
  }
  const keepLooking = async (): Promise<void> => {
    while (!signal.aborted) {
      wake = new AbortController()
      const waitMs = await look()
      await pause(timers, waitMs, AbortSignal.any([signal, wake.signal]))
    }
  }

  return {
    use: (next) => {
      sender = next
      said = null
      lookNow()
    },
    received: (text) => {
      const task = readTask(text)
      if (task === null) return log.warn('a task of the plane cannot be read')
      const { id } = task.says
      if (received.has(id) || carried.has(id)) return
      if (received.size >= mostReceived)
        return log.warn({ task: id }, 'a task is left to the plane: too many wait here')
      received.set(id, task)
      show()
      begin(task).catch(bugs.reject)
    },
    announced: (number) => statements.announced(number),
    run: async () => {
      await Promise.race([bugs.promise, Promise.all([keepLooking(), statements.keep(), results.keep()])])
    },
  }
}

type ShownTask = NonNullable<StatusFile['tasks']>[number]

const sinceOf = (shown: readonly ShownTask[], { id, state }: Pick<ShownTask, 'id' | 'state'>): string | undefined =>
  shown.find((one) => one.id === id && one.state === state)?.since

/** The longer it has run, the later its end is noticed: an eighth of that time at most. */
const paceMs = (ranMs: number): number => Math.min(longestLookMs, Math.max(shortestLookMs, ranMs / 8))

const interrupted = ended('INTERRUPTED', 'The agent ended while it carried out the task')
