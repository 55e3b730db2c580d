// What an agent has of tasks while its host takes none: this file. The rest is loaded when its helper says that it takes tasks.

import type { CallingAgent } from '#agent/link/plane-client.ts'
import type { Identity } from '#agent/state/credentials.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { TasksStateBody } from '#wire/tasks/task-frames.ts'
import type { TaskHelper } from './helped-tasks.ts'
import type { RecoveryRotation } from '#agent/state/recovery-rotation.ts'
import type { TaskKeeper } from './task-keeper.ts'

/** The channel in use. */
export type TasksSender = {
  /** Only sent to a plane that has tasks. */
  tasksState(body: TasksStateBody): void
}

export type TaskingAgent = CallingAgent & Pick<AgentParts, 'keeper' | 'storage'>

export type TaskLink = {
  /** The helper of this host takes tasks. */
  takes(): boolean
  /** The channel in use; null: none. */
  use(sender: TasksSender | null): void
  /** The plane has sent a task. Nothing about it is believed before the helper has verified it. */
  received(task: string): void
  /** The signers have this number now. */
  announced(number: number): void
  /** Carries out tasks until the agent is stopped. */
  keep(agent: TaskingAgent, identityNow: () => Identity): Promise<void>
}

/** What may come while the rest is being loaded: a node has at most 4 tasks under way. */
const mostEarly = 16

export const openTaskLink = (helper: TaskHelper, rotation: RecoveryRotation): TaskLink => {
  let keeper: TaskKeeper | null = null
  let sender: TasksSender | null = null
  let early: string[] = []
  let announced: number | null = null

  return {
    takes: () => helper.takes(),
    use: (next) => {
      sender = next
      keeper?.use(next)
    },
    received: (task) => {
      if (keeper !== null) keeper.received(task)
      else if (early.length < mostEarly) early.push(task)
    },
    announced: (number) => {
      announced = number
      keeper?.announced(number)
    },
    keep: async (agent, identityNow) => {
      await helper.taken(agent.signal)
      if (agent.signal.aborted) return
      const { openTaskKeeper } = await import('./task-keeper.ts')
      const opened = openTaskKeeper(agent, identityNow, helper, rotation)
      keeper = opened
      opened.use(sender)
      if (announced !== null) opened.announced(announced)
      for (const task of early) opened.received(task)
      early = []
      try {
        await opened.run()
      } finally {
        keeper = null
      }
    },
  }
}
