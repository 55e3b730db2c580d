// Tasks at one replica, put together: who takes them here, who waits for them, and what the leader ends.

import type { Core } from '#plane/core/core.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import { openTaskDispatcher, type TaskDispatcher } from './dispatcher.ts'
import { openTaskPolls, type PollParts, type TaskPolls } from './poll-tasks.ts'
import type { TaskSigner } from './task-signers.ts'

export type TaskParts = {
  readonly domainName: string
  readonly signer: TaskSigner
  readonly sessions: Pick<SessionRegistry, 'onEnd'>
  readonly openPoll: PollParts['open']
}

export type Tasks = { readonly dispatcher: TaskDispatcher; readonly polls: TaskPolls }

export const openTasks = (core: Core, { domainName, signer, sessions, openPoll }: TaskParts): Tasks => {
  const dispatcher = openTaskDispatcher(core, domainName, signer)
  sessions.onEnd((_node, session) => dispatcher.left(session))
  return { dispatcher, polls: openTaskPolls(core, { dispatcher, open: openPoll }) }
}
