// What an earlier helper had begun and not ended: what is left of its program is ended, and then it is unknown, or begun again where
// its type may be repeated.

import type { Log } from '#platform/log.ts'
import { ownMark, stillRuns } from '#platform/process-mark.ts'
import type { ThisNode } from './judge-statement.ts'
import { isAgentType, type prepareTask, type TaskToPrepare } from './prepare-task.ts'
import type { PreparedTask } from './prepared-task.ts'
import { resultOfReboot } from './reboot-task.ts'
import { emptyResult, type TaskMemory, type TaskRecord } from './task-memory.ts'
import type { TasksToml } from './tasks-toml.ts'

export type LeftTasks = {
  /**
   * One after the other. One of which a program may still run, since the system could not end it, stays for the next call, and keeps no
   * other waiting. Never rejects.
   */
  takeUp(tasks: TasksToml, node: ThisNode): Promise<void>
  /** Nothing is begun any more when it resolves. */
  close(): Promise<void>
}

export type LeftTaskParts = {
  readonly memory: TaskMemory
  readonly log: Log
  /** What is left of its program. Rejects with what the system says. */
  endLeft(id: string): Promise<void>
  boot(): string | null
  mayRepeat(record: TaskRecord, tasks: TasksToml, node: ThisNode): boolean
  prepare(tasks: TasksToml, task: TaskToPrepare): ReturnType<typeof prepareTask>
  start(id: string, prepared: PreparedTask): void
}

export const openLeftTasks = (parts: LeftTaskParts): LeftTasks => {
  const { memory, log, boot, prepare } = parts
  let left = memory.begun()
  let underWay: Promise<void> | null = null
  let isClosed = false

  const takeUpOne = async (record: TaskRecord, tasks: TasksToml, node: ThisNode): Promise<void> => {
    // The agent's own, or those of a helper that was started by mistake beside this one.
    if (isAgentType(record.type) || (record.by.birth !== null && stillRuns(record.by))) return
    await parts.endLeft(record.id)
    // Left as begun, for the next helper.
    if (isClosed) return
    if (record.type === 'reboot') return memory.end(record.id, resultOfReboot(record, boot()))
    const { parameters } = record
    const mayBegin = parameters !== null && parts.mayRepeat(record, tasks, node)
    const again = mayBegin ? prepare(tasks, { ...record, parameters, file: null }) : null
    if (again?.kind === 'prepared' && again.repeatable && memory.beginAgain(record, ownMark()))
      return parts.start(record.id, again)
    if (again?.kind === 'prepared') await again.drop()
    memory.end(record.id, {
      ...emptyResult,
      code: 'INTERRUPTED',
      detail: 'The helper ended in the middle: whether the task had an effect is unknown',
      started_at_ms: record.begun_ms,
    })
  }
  const takeUpAll = async (tasks: TasksToml, node: ThisNode): Promise<void> => {
    const failed: TaskRecord[] = []
    for (const record of left) {
      try {
        if (!isClosed) await takeUpOne(record, tasks, node)
      } catch (error) {
        log.error({ task: record.id, err: error }, 'a task of an earlier helper could not be taken up')
        failed.push(record)
      }
    }
    left = failed
  }
  return {
    takeUp: (tasks, node) => {
      if (left.length === 0 || isClosed) return Promise.resolve()
      underWay ??= takeUpAll(tasks, node).finally(() => (underWay = null))
      return underWay
    },
    close: async () => {
      isClosed = true
      await underWay
    },
  }
}
