// Tasks over channels: which sessions take them, and who has to hear that the signers have changed.

import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { TaskDispatcher } from '#plane/tasks/dispatcher.ts'
import type { TasksStateBody } from '#wire/tasks/task-frames.ts'

export type TaskSessions = {
  /** The agent takes tasks over this session, and says what it has. */
  reported(session: Session, state: TasksStateBody): void
  /** The signers have this number now: agents that hold another statement fetch the one that says so. */
  announce(number: number): void
}

export const openTaskSessions = (
  sessions: Pick<SessionRegistry, 'all'>,
  dispatcher: Pick<TaskDispatcher, 'greeted'>,
): TaskSessions => ({
  reported(session, { verifiers, held }) {
    session.verifiers = verifiers
    // Not waited for: what is dispatched must not hold up the frames and pings behind this one.
    void dispatcher.greeted(session, new Set(held), (task) => session.send({ type: 'task', body: { task } }))
  },
  announce(number) {
    for (const session of sessions.all())
      if (session.verifiers !== null && session.verifiers !== number)
        session.send({ type: 'task_verifiers', body: { number } })
  },
})
