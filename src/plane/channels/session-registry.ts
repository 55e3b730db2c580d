// Every channel that is open on this plane, by node. An epoch may hold two at once (current and pending certificate);
// the older drains until a deadline.

import type { NodeId } from '#domain/node.ts'
import type { NodePrincipal } from '#domain/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { AgentEvidence } from '#wire/agent-evidence.ts'
import { Session, type SessionSocket } from './session.ts'

export type SessionRegistry = {
  open(socket: SessionSocket, principal: NodePrincipal, evidence?: AgentEvidence | null): Session
  /** Oldest first. Sessions that have ended are not among them. */
  of(node: NodeId): readonly Session[]
  all(): Iterable<Session>
  count(): number
  /** Called when a node's last channel has ended, with the number of that session. */
  onAbsent(run: (node: NodeId, session: number) => void): void
  /** Ends them all, and no other may be opened. */
  close(code: string, detail: string): void
  isClosed(): boolean
}

/** More channels of one node than these are a loop in its agent, not a rotation. */
const mostPerNode = 2

export const openSessionRegistry = (clock: Clock): SessionRegistry => {
  const byNode = new Map<NodeId, readonly Session[]>()
  const absent: ((node: NodeId, session: number) => void)[] = []
  // Starts from the clock, so that a number is not given twice across restarts.
  let lastNumber = clock.nowMs() * 1000
  let open = 0
  let closed = false

  const of = (node: NodeId): readonly Session[] => byNode.get(node) ?? []
  function* all(): Iterable<Session> {
    for (const sessions of byNode.values()) yield* sessions
  }

  const onEnd = (session: Session): void => {
    const { id } = session.principal
    const rest = of(id).filter((other) => other !== session)
    open--
    if (rest.length > 0) {
      byNode.set(id, rest)
      return
    }
    byNode.delete(id)
    for (const run of absent) run(id, session.number)
  }

  return {
    open(socket, principal, evidence = null) {
      if (closed) throw new Error('a channel was opened while the plane stops')
      const [openedAtMs, heardMs] = [clock.nowMs(), clock.monotonicMs()]
      const session = new Session(socket, { principal, evidence, number: ++lastNumber, openedAtMs, heardMs, onEnd })
      const sessions = [...of(principal.id), session]
      byNode.set(principal.id, sessions)
      open++
      for (const older of sessions.slice(0, -mostPerNode)) older.end('REPLACED', 'a newer channel of this node is open')
      return session
    },
    of,
    all,
    count: () => open,
    onAbsent: (run) => void absent.push(run),
    close(code, detail) {
      closed = true
      for (const session of [...all()]) session.end(code, detail)
    },
    isClosed: () => closed,
  }
}
