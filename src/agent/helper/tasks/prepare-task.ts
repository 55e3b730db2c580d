// From a verified task to what it does here: its type is one that the host's own file allows, and its parameters fit.

import type { Timers } from '#platform/timers.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { taskParameters } from '#wire/tasks/task-parameters.ts'
import { prepareCleanup, type CleanupParts } from './cleanup-task.ts'
import { prepareFetchFile } from './fetch-file-task.ts'
import { prepareOwnType } from './own-types.ts'
import { isShippedType, type ParametersOf, type PreparedTask, type TaskHost } from './prepared-task.ts'
import { prepareReboot } from './reboot-task.ts'
import { prepareRun } from './run-task.ts'
import { prepareService } from './service-task.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export type TaskToPrepare = {
  readonly id: string
  readonly type: string
  readonly parameters: Readonly<Record<string, unknown>>
  /** Of a `fetch-file`: where the agent has put the bytes. */
  readonly file: string | null
}

export type HandlerParts = CleanupParts & {
  readonly timers: Pick<Timers, 'after'>
  /** Null: what the system has for it. */
  readonly rebootCommand: readonly string[] | null
}

/** Carried out by the agent, after they were verified and remembered here. */
export const isAgentType = (type: string): boolean => ['rotate-recovery', 'collect-diagnostics'].includes(type)

/** `agent`: the agent carries it out. */
export const prepareTask = (
  host: TaskHost,
  task: TaskToPrepare,
  parts: HandlerParts,
): PreparedTask | TaskRefusal | { readonly kind: 'agent' } => {
  const { id, type, parameters, file } = task
  if (!host.tasks.allow.includes(type))
    return refuseTask('TYPE_NOT_ALLOWED', `agent.toml does not allow tasks of type ${type}`)
  if (!isShippedType(type))
    return type.startsWith('x-')
      ? prepareOwnType(host, task)
      : refuseTask('TYPE_NOT_ALLOWED', `This helper does not know the type ${type}`)
  if (!matchesSchema(taskParameters[type], parameters))
    return refuseTask('PARAMETERS_INVALID', `The parameters are not those of ${type}`)
  switch (type) {
    case 'run':
      return prepareRun(host, id, parameters as ParametersOf<'run'>)
    case 'service':
      return prepareService(host, parameters as ParametersOf<'service'>)
    case 'fetch-file':
      return prepareFetchFile(host, parameters as ParametersOf<'fetch-file'>, file)
    case 'reboot':
      return prepareReboot(parts.timers, host.runs, parts.rebootCommand)
    case 'cleanup':
      return prepareCleanup(host, id, parameters as ParametersOf<'cleanup'>, parts)
    case 'rotate-recovery':
    case 'collect-diagnostics':
      return { kind: 'agent' }
  }
}
