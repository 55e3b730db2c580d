// The verbs for tasks. What carries them out is loaded when agent.toml has [tasks], and not before.

import type { AgentToml } from './agent-toml.ts'
import type { ThisNode } from './tasks/judge-statement.ts'
import type { TaskParts, Tasks } from './tasks/open-tasks.ts'
import { taskFolder, type TasksToml } from './tasks/tasks-toml.ts'
import { refusalMessage, type TaskRefusal } from './tasks/task-verbs.ts'
import { refused, type AnswerOf, type Refused, type RequestOf } from './verbs.ts'

type TaskVerb = 'task.nonce' | 'task.learn' | 'task.begin' | 'task.ended' | 'task.look' | 'task.forget'

export type ListedTasks = {
  readonly perform: {
    readonly [V in TaskVerb]: (toml: AgentToml, body: RequestOf<V>) => Promise<AnswerOf<V> | Refused>
  }
  /** What an earlier helper left is taken up where tasks are allowed. */
  takeUp(toml: AgentToml): Promise<void>
  close(): Promise<void>
}

type Call<T> = (open: Tasks, tasks: TasksToml, node: ThisNode) => T | TaskRefusal

export const openListedTasks = (parts: TaskParts, stateFolder: string): ListedTasks => {
  /** By their folders: agent.toml may name another one while tasks of the first run. */
  const opened = new Map<string, Promise<Tasks | TaskRefusal>>()
  const tasksIn = async (tasks: TasksToml, node: ThisNode): Promise<Tasks | TaskRefusal> => {
    const folder = taskFolder(tasks, stateFolder)
    const opening =
      opened.get(folder) ??
      import('./tasks/open-tasks.ts').then(({ openTasks }) => openTasks(folder, tasks, node, parts))
    opened.set(folder, opening)
    // The next request tries again. One that has done so meanwhile holds the lock of the folder.
    const giveUp = (): void => {
      if (opened.get(folder) === opening) opened.delete(folder)
    }
    try {
      const open = await opening
      if ('fault' in open) giveUp()
      return open
    } catch (error) {
      giveUp()
      throw error
    }
  }
  const performed = async <T extends object>({ tasks, node }: AgentToml, call: Call<T>): Promise<T | Refused> => {
    if (tasks === null) return refused('NOT_ALLOWED', 'agent.toml has no [tasks]: no task is carried out here')
    if (node === null)
      return refused('NOT_ALLOWED', 'agent.toml has no [node]: whose tasks are carried out is not said')
    const open = await tasksIn(tasks, node)
    const answer = 'fault' in open ? open : call(open, tasks, node)
    return isRefusal(answer) ? refused('TASK_REFUSED', refusalMessage(answer)) : answer
  }
  return {
    perform: {
      'task.nonce': (toml) => performed(toml, (open) => open.nonce()),
      'task.learn': (toml, { statement }) =>
        performed(toml, (open, tasks, node) => open.learn(tasks, node, statement) ?? {}),
      'task.begin': (toml, request) => performed(toml, (open, tasks, node) => open.begin(tasks, node, request)),
      'task.ended': (toml, { id, ...result }) => performed(toml, (open) => open.ended(id, result) ?? {}),
      'task.look': (toml) => performed(toml, (open, tasks, node) => open.look(tasks, node)),
      'task.forget': (toml, { id }) =>
        performed(toml, (open) => {
          open.forget(id)
          return {}
        }),
    },
    takeUp: async ({ tasks, node }) => {
      if (tasks !== null && node !== null) await tasksIn(tasks, node)
    },
    close: async () => {
      for (const opening of opened.values()) {
        const open = await opening.catch(() => null)
        if (open !== null && !('fault' in open)) await open.close()
      }
    },
  }
}

const isRefusal = (answer: object): answer is TaskRefusal => 'kind' in answer && answer.kind === 'task-refused'
