// What every type of task is before it is begun: checked against the host's own file, and ready to be started. Nothing has an effect
// before the task is remembered.

import type { Static } from 'typebox'
import { processOwner, type Owner } from '#platform/files.ts'
import type { LimitedRun, Limiter } from '#platform/limited-process.ts'
import { findUser, type SystemUser } from '#platform/system-users.ts'
import { faultOfPath, type Trust } from '#platform/trusted-path.ts'
import { taskParameters } from '#wire/tasks/task-parameters.ts'
import { emptyResult } from './task-memory.ts'
import type { TasksToml } from './tasks-toml.ts'
import { longestDetail, refuseTask, type HostResult, type TaskRefusal } from './task-verbs.ts'

export type ShippedType = keyof typeof taskParameters
export type ParametersOf<T extends ShippedType> = Static<(typeof taskParameters)[T]>

export const isShippedType = (type: string): type is ShippedType => Object.hasOwn(taskParameters, type)

/** What became of it; when it was started is added by the one that started it. */
export type TaskEnd = Partial<Omit<HostResult, 'started_at_ms'>>

export type PreparedTask = {
  readonly kind: 'prepared'
  /** Whether it may be begun again where it was interrupted. */
  readonly repeatable: boolean
  /** `over`: the helper ends. Never rejects but for a fault of the system. Null: how it ends is seen after this helper's end. */
  run(over: AbortSignal): Promise<TaskEnd | null>
  /** It is not begun after all. */
  drop(): Promise<void>
}

/** What a handler may use. */
export type TaskHost = {
  readonly tasks: TasksToml
  readonly trust: Trust
  /** Null: this host has no way to limit a program. */
  readonly limiter: Limiter | null
  readonly runs: 'unit' | 'child'
  /** In the names of units and groups: two helpers on one machine keep out of each other's way. */
  readonly mark: string
  readonly agentUser: Owner | null
}

export const programName = (mark: string, id: string): string => `muster-task-${mark}-${id}`

export const mostProcesses = 512

export const faultOfExecutable = (executable: string, trust: Trust): TaskRefusal | null => {
  const fault = faultOfPath(executable, trust, { kind: 'file', links: 'followed' })
  return fault === null ? null : refuseTask('PATH_UNSAFE', `${executable} is not run: ${fault}`)
}

/**
 * As whom a program of a task runs; never as the agent, whose keys it could read. A helper that was started by hand has no other user
 * to offer than its own, which is null.
 */
export const taskUser = (name: string, agentUser: Owner | null): SystemUser | TaskRefusal | null => {
  const user = findUser(name)
  if (user === null) return refuseTask('NOT_LISTED', `There is no user ${name} on this host`)
  const own = processOwner().uid
  if (own !== 0)
    return user.uid === own
      ? null
      : refuseTask('NOT_LISTED', `A helper of user ${own} runs programs as that user only, not as ${name}`)
  return user.uid === agentUser?.uid
    ? refuseTask('NOT_LISTED', `Nothing is run as ${name}, who is the agent: it could read the agent's keys`)
    : user
}

/** How the run of a program is reported to the plane. */
export const endOfRun = (
  what: string,
  { code, how, timedOut, isLost, output }: LimitedRun,
  withinMs: number,
): TaskEnd => {
  const end = { ...emptyResult, exit_code: code, output: output.bytes === 0 ? null : output }
  if (timedOut)
    return { ...end, code: 'TIMED_OUT', detail: shortDetail(`${what} was ended after ${withinMs / 1000} s`) }
  if (isLost)
    return {
      ...end,
      exit_code: null,
      code: 'INTERRUPTED',
      detail: shortDetail(`What waited for ${what} ended before it: ${how}`),
    }
  return code === 0 ? end : { ...end, code: 'PROGRAM_FAILED', detail: shortDetail(`${what} failed: ${how}`) }
}

export const shortDetail = (text: string): string => text.replace(/\p{Cc}/gu, ' ').slice(0, longestDetail)
