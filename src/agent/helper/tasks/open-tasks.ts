// Tasks on this host, from a request of the agent to what is run: verify, remember, start. Loaded only where agent.toml has [tasks].

import type { Clock } from '#platform/clock.ts'
import { errno, makeFolder } from '#platform/files.ts'
import { flockFolder, type FileLock } from '#platform/flock.ts'
import { openLimiter } from '#platform/limited-process.ts'
import type { Log } from '#platform/log.ts'
import { ownMark } from '#platform/process-mark.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { judgeStatement, type ThisNode } from './judge-statement.ts'
import { judgeTask, mayBeginAgain } from './judge-task.ts'
import { openLeftTasks, type LeftTaskParts } from './left-tasks.ts'
import { isAgentType, prepareTask, type HandlerParts, type TaskToPrepare } from './prepare-task.ts'
import { programName, shortDetail, type PreparedTask, type TaskEnd, type TaskHost } from './prepared-task.ts'
import { openProvenTime } from './proven-time.ts'
import { findBootId } from './reboot-task.ts'
import { openStatementFile, type Pinned } from './statement-file.ts'
import { emptyResult, isFull, openTaskMemory } from './task-memory.ts'
import type { TasksToml } from './tasks-toml.ts'
import { longestEvidence, refuseTask, type HostResult, type TaskRefusal } from './task-verbs.ts'

export type TaskParts = Omit<TaskHost, 'tasks' | 'limiter'> & {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  /** For tests: a machine cannot be restarted in one. */
  readonly reboot: { readonly command: readonly string[]; bootId(): string | null } | null
}

export type TaskRequest = {
  readonly statement: string | null
  readonly task: string
  readonly file?: string | undefined
}
type Listed = { id: string; type: string; state: 'running' | 'ended'; result: HostResult | null }

export type Tasks = {
  nonce(): { nonce: string }
  /** Believes a statement of verifiers before there is a task: which tasks are later than it is known then. */
  learn(tasks: TasksToml, node: ThisNode, statement: string): TaskRefusal | null
  begin(tasks: TasksToml, node: ThisNode, request: TaskRequest): { outcome: 'begun' | 'known' | 'yours' } | TaskRefusal
  ended(id: string, result: HostResult): TaskRefusal | null
  look(tasks: TasksToml, node: ThisNode): { number: number | null; epoch: number | null; tasks: Listed[] } | TaskRefusal
  forget(id: string): void
  /** What runs is ended, and is interrupted. */
  close(): Promise<void>
}

const mostRunning = 8
/** How much later than written down it may have become. */
const floorStepMs = 600_000
/** In one answer: that many fit, however long they are. */
const resultsAtOnce = 4

/**
 * Refused where the folder cannot be trusted. What an earlier helper has left is ended before anything is begun. Rejects with what the
 * disk or the system says; the folder is free again then.
 */
export const openTasks = async (
  folder: string,
  tasks: TasksToml,
  node: ThisNode,
  parts: TaskParts,
): Promise<Tasks | TaskRefusal> => {
  const { trust, log } = parts
  makeFolder(folder, 0o700)
  const fault = faultOfPath(folder, trust, { kind: 'folder', links: 'followed' })
  if (fault !== null) return refuseTask('PATH_UNSAFE', `Tasks cannot be remembered in ${folder}: ${fault}`)
  const lock = lockOf(folder, log)
  if ('fault' in lock) return lock
  try {
    return await openLocked(folder, tasks, node, parts, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

const openLocked = async (
  folder: string,
  tasks: TasksToml,
  node: ThisNode,
  parts: TaskParts,
  lock: FileLock,
): Promise<Tasks> => {
  const { clock, trust, log, runs, mark } = parts
  let held: FileLock | null = lock
  const file = openStatementFile(folder, trust)
  const time = openProvenTime(clock, parts.random)
  const atStart = file.now(tasks.statementKeys, node)
  if (!('fault' in atStart)) time.noEarlierThan(Math.max(atStart.floorMs, atStart.memory?.issuedMs ?? 0))
  const memory = openTaskMemory(folder, trust, Math.max(clock.nowMs(), time.floorMs()))
  const limiter = openLimiter(runs)
  const running = new Map<string, Promise<void>>()
  const ending = new AbortController()
  const found = parts.reboot === null ? await findBootId(runs) : null
  const boot = (): string | null => parts.reboot?.bootId() ?? found
  const handlerParts: HandlerParts = {
    timers: parts.timers,
    rebootCommand: parts.reboot?.command ?? null,
    nowMs: () => time.nowMs() ?? clock.nowMs(),
    freeRoom: () => memory.freeSpare(),
  }
  const prepare = (listed: TasksToml, task: TaskToPrepare) =>
    prepareTask({ tasks: listed, trust, limiter, runs, mark, agentUser: parts.agentUser }, task, handlerParts)

  const keep = (pinned: Pinned): void => {
    try {
      file.keep(pinned)
    } catch (error) {
      if (!isFull(error)) throw error
      memory.freeSpare()
      file.keep(pinned)
    }
  }
  const noteFloor = (pinned: Pinned): void => {
    if (time.floorMs() <= pinned.floorMs + floorStepMs) return
    try {
      file.keep({ ...pinned, floorMs: time.floorMs() })
    } catch (error) {
      // A full disk refuses no cleanup for that: it is tried again by the next look.
      if (errno(error) === null) throw error
    }
  }
  const sweep = (pinned: Pinned): void => {
    noteFloor(pinned)
    memory.sweep(time.nowMs() ?? clock.nowMs(), (expiresMs) =>
      keep({
        ...pinned,
        forgottenUntilMs: Math.max(pinned.forgottenUntilMs, expiresMs),
        floorMs: Math.max(pinned.floorMs, time.floorMs()),
      }),
    )
  }

  const start = (id: string, prepared: PreparedTask): void => {
    const startedMs = clock.nowMs()
    const end = (ended: TaskEnd | null): void => {
      // Left as begun, it is begun again by the next helper.
      if (ended === null || (ending.signal.aborted && prepared.repeatable)) return
      memory.end(id, { ...emptyResult, ...ended, started_at_ms: startedMs })
    }
    // What is thrown before there is a promise ends the task as well: its record would say that it runs, for ever.
    const run = Promise.resolve()
      .then(() => prepared.run(ending.signal))
      .then(end, (error: unknown) => {
        log.error({ task: id, err: error }, 'a task could not be carried out')
        end({ code: 'NOT_DONE', detail: shortDetail(error instanceof Error ? error.message : String(error)) })
      })
    running.set(
      id,
      run.finally(() => void running.delete(id)),
    )
  }

  const mayRepeat: LeftTaskParts['mayRepeat'] = (record, tasks, node) => {
    const pinned = file.now(tasks.statementKeys, node)
    const known = 'fault' in pinned ? null : pinned.memory
    const now = { hostMs: clock.nowMs(), provenMs: time.nowMs(), floorMs: time.floorMs() }
    return mayBeginAgain(record, known, now)
  }
  const endLeft = async (id: string): Promise<void> => limiter?.endLeft(programName(mark, id))
  const left = openLeftTasks({ memory, log, endLeft, boot, mayRepeat, prepare, start })
  await left.takeUp(tasks, node)

  /** The statement is believed and kept, or was before. */
  const learn = (pinned: Pinned, node: ThisNode, text: string): Pinned | TaskRefusal => {
    const facts = { text, node, pinned: pinned.pinned, memory: pinned.memory, nonces: time.nonces() }
    const judged = judgeStatement({ ...facts, hostMs: clock.nowMs(), provenMs: time.nowMs(), floorMs: time.floorMs() })
    if (judged.kind !== 'accepted') return judged.kind === 'known' ? pinned : judged
    const { proof } = judged
    const issuedMs = judged.memory.statement?.issuedMs ?? 0
    const floorMs = proof?.timeMs ?? Math.max(time.floorMs(), issuedMs)
    const learned = { ...pinned, pinned: judged.pinned, memory: judged.memory, floorMs }
    keep(learned)
    if (proof === null) time.noEarlierThan(issuedMs)
    else time.prove(proof)
    return learned
  }

  const seenBefore = (id: string): { outcome: 'known' } | TaskRefusal =>
    memory.isListed(id)
      ? { outcome: 'known' }
      : refuseTask('SEEN_BEFORE', 'The task was carried out before, and the plane has its result')

  const beginNow: Tasks['begin'] = (listed, node, { statement, task: text, file: brought }) => {
    // Before the statement that comes with it is judged: nothing is done for it, so nothing has to be believed.
    const said = parseStatement('task', text)?.value.id
    if (said !== undefined && memory.isSeen(said)) return seenBefore(said)
    const before = file.now(listed.statementKeys, node)
    if ('fault' in before) return before
    sweep(before)
    const swept = file.now(listed.statementKeys, node)
    if ('fault' in swept) return swept
    const known = statement === null ? swept : learn(swept, node, statement)
    if ('fault' in known) return known
    const judged = judgeTask({
      text,
      node,
      memory: known.memory,
      isSeen: (id) => memory.isSeen(id),
      forgottenUntilMs: known.forgottenUntilMs,
      hostMs: clock.nowMs(),
      provenMs: time.nowMs(),
      floorMs: time.floorMs(),
    })
    if (judged.kind === 'task-refused') return judged
    if (judged.kind === 'seen') return seenBefore(judged.id)
    const { id, type, key, parameters, expires_ms } = judged.task
    if (running.size >= mostRunning) return refuseTask('HELPER_BUSY', `${mostRunning} tasks are being carried out`)
    const prepared = prepare(listed, { id, type, parameters, file: brought ?? null })
    if (prepared.kind === 'task-refused') return prepared
    const drop = (): void => {
      if (prepared.kind === 'prepared')
        prepared
          .drop()
          .catch((error: unknown) => log.warn({ task: id, err: error }, 'a control group could not be removed'))
    }
    try {
      const mark = { by: ownMark(), boot: boot(), attempts: 1 }
      const record = { id, type, key, expires_ms, begun_ms: clock.nowMs(), ...mark, result: null }
      const begun = memory.begin(
        {
          ...record,
          parameters: prepared.kind === 'prepared' && prepared.repeatable ? parameters : null,
          forgotten: false,
        },
        type === 'cleanup' ? 'spare' : 'as-it-is',
      )
      if (begun !== 'begun') drop()
      if (typeof begun !== 'string') return begun
      if (begun === 'known') return { outcome: 'known' }
    } catch (error) {
      drop()
      throw error
    }
    if (prepared.kind === 'agent') return { outcome: 'yours' }
    start(id, prepared)
    return { outcome: 'begun' }
  }

  const whereThereIsRoom = <T>(act: () => T): T | TaskRefusal => {
    try {
      return act()
    } catch (error) {
      if (!isFull(error)) throw error
      return refuseTask('DISK_FULL', `There is no room in ${folder} to remember the task`)
    }
  }

  return {
    nonce: () => ({ nonce: time.newNonce() }),
    learn: (listed, node, statement) =>
      whereThereIsRoom(() => {
        const before = file.now(listed.statementKeys, node)
        const known = 'fault' in before ? before : learn(before, node, statement)
        return 'fault' in known ? known : null
      }),
    begin: (listed, node, request) => whereThereIsRoom(() => beginNow(listed, node, request)),
    ended: (id, result) => {
      const task = memory.listed().find((one) => one.id === id)
      if (task === undefined || !isAgentType(task.type))
        return refuseTask('NOT_DONE', `There is no task ${id} that the agent carries out`)
      if (JSON.stringify(result.evidence).length > longestEvidence)
        return refuseTask('PARAMETERS_INVALID', `The evidence has more than ${longestEvidence} bytes`)
      memory.end(id, result)
      return null
    },
    look: (listed, node) => {
      const pinned = file.now(listed.statementKeys, node)
      if ('fault' in pinned) return pinned
      sweep(pinned)
      void left.takeUp(listed, node)
      let results = 0
      return {
        number: pinned.memory?.number ?? null,
        epoch: pinned.memory?.epoch ?? null,
        tasks: memory.listed().map(({ id, type, isEnded }) => ({
          id,
          type,
          state: isEnded ? 'ended' : 'running',
          result: isEnded && ++results <= resultsAtOnce ? memory.result(id) : null,
        })),
      }
    },
    forget: (id) => memory.forget(id),
    close: async () => {
      ending.abort()
      await left.close()
      await Promise.all(running.values())
      held?.release()
      // Once: the number of the descriptor may be another file's by then.
      held = null
    },
  }
}

/** Two helpers on one memory would end each other's programs, and begin a task twice that may be repeated. */
const lockOf = (folder: string, log: Log): FileLock | TaskRefusal => {
  const lock = flockFolder(folder, 'lock')
  if (lock === 'taken') return refuseTask('HELPER_BUSY', `Another helper remembers its tasks in ${folder}`)
  if (lock === 'impossible') return refuseTask('NOT_DONE', `${folder} cannot be locked: its disk is full or read-only`)
  if (lock !== 'no-program') return lock
  log.warn({ folder }, 'this host has no program flock (util-linux), which keeps two helpers off one folder of tasks')
  return { release: () => {} }
}
