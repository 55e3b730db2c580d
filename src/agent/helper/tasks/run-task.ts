// `run`: a program that the host's own file lists, with the user, the folder and the limits that are in that file. Never a shell.

import { findUser } from '#platform/system-users.ts'
import {
  endOfRun,
  faultOfExecutable,
  mostProcesses,
  programName,
  taskUser,
  type PreparedTask,
  type TaskHost,
  type ParametersOf,
} from './prepared-task.ts'
import type { ListedTaskProgram } from './tasks-toml.ts'
import { keptOutput, refuseTask, type TaskRefusal } from './task-verbs.ts'

export const prepareRun = (
  host: TaskHost,
  id: string,
  { name, arguments: given }: ParametersOf<'run'>,
): PreparedTask | TaskRefusal => {
  const listed = host.tasks.run.get(name)
  if (listed === undefined) return refuseTask('NOT_LISTED', `agent.toml lists no tasks.run.${name}`)
  const words = wordsFor(name, listed, given)
  if ('kind' in words) return words
  return prepareProgram(host, id, { ...listed, name, words: words.words, input: '', repeatable: false })
}

const wordsFor = (
  name: string,
  listed: ListedTaskProgram,
  given: readonly string[] | undefined,
): { readonly words: readonly string[] } | TaskRefusal => {
  // By whatever name root is listed: its orders would come from the plane.
  if (listed.arguments === 'any' && findUser(listed.user)?.uid === 0)
    return refuseTask(
      'NOT_LISTED',
      `tasks.run.${name} is for root, and takes no arguments but those that agent.toml lists`,
    )
  if (listed.arguments === 'any') return { words: given ?? [] }
  const isSame = given === undefined || JSON.stringify(given) === JSON.stringify(listed.arguments)
  return isSame
    ? { words: listed.arguments }
    : refuseTask('NOT_LISTED', `agent.toml lists other arguments for tasks.run.${name}; "any" would allow these`)
}

export type ProgramTask = Omit<ListedTaskProgram, 'arguments'> & {
  readonly name: string
  readonly words: readonly string[]
  /** On its standard input. */
  readonly input: string
  readonly repeatable: boolean
}

/** Also for the host's own types. */
export const prepareProgram = (host: TaskHost, id: string, program: ProgramTask): PreparedTask | TaskRefusal => {
  const { name, executable, words, input, workingDirectory, withinMs, memoryBytes, repeatable } = program
  const user = taskUser(program.user, host.agentUser)
  if (user !== null && 'kind' in user) return user
  const fault = faultOfExecutable(executable, host.trust)
  if (fault !== null) return fault
  const limited = host.limiter?.prepare(programName(host.mark, id), { memoryBytes, mostProcesses }) ?? null
  if (limited === null)
    return refuseTask(
      'NO_LIMITS',
      'This host limits neither memory nor processes: it has no such controllers, or no control group for this helper',
    )
  const command = { command: [executable, ...words], cwd: workingDirectory, user, input, withinMs, keptOutput }
  return {
    kind: 'prepared',
    repeatable,
    drop: limited.drop,
    run: async (over) => {
      const ran = await limited.run(command, over)
      return over.aborted
        ? { code: 'INTERRUPTED', detail: `${name} was ended with the helper` }
        : endOfRun(name, ran, withinMs)
    },
  }
}
