// Every channel that is open on this plane, by node. An epoch may hold two at once (current and pending certificate);
// the older drains until a deadline.

import type { WebSocket } from 'ws'
import type { NodeId } from '#domain/node.ts'
import type { NodePrincipal } from '#domain/principal.ts'
import type { Clock } from '#platform/clock.ts'
import { Session } from './session.ts'

export type SessionRegistry = {
  open(socket: WebSocket, principal: NodePrincipal): Session
  /** The session has ended, by whichever side. */
  ended(session: Session): void
  of(node: NodeId): readonly Session[]
  all(): Iterable<Session>
  count(): number
  /** Called when a node's last channel has ended, with the number of that session. */
  onAbsent(run: (node: NodeId, session: number) => void): void
}

/** More channels of one node than these are a loop in its agent, not a rotation. */
const mostPerNode = 2

export const openSessionRegistry = (clock: Clock): SessionRegistry => {
  const byNode = new Map<NodeId, Session[]>()
  const absent: ((node: NodeId, session: number) => void)[] = []
  // Starts from the clock, so that a number is not given twice across restarts.
  let lastNumber = clock.nowMs() * 1000
  let open = 0

  const ended = (session: Session): void => {
    const sessions = byNode.get(session.principal.id)
    const at = sessions?.indexOf(session) ?? -1
    if (sessions === undefined || at < 0) return
    sessions.splice(at, 1)
    open--
    if (sessions.length > 0) return
    byNode.delete(session.principal.id)
    for (const run of absent) run(session.principal.id, session.number)
  }

  return {
    open(socket, principal) {
      const session = new Session(socket, principal, ++lastNumber, clock.nowMs(), clock.monotonicMs())
      const sessions = byNode.get(principal.id)
      if (sessions === undefined) byNode.set(principal.id, [session])
      else sessions.push(session)
      open++
      while (sessions !== undefined && sessions.length > mostPerNode) {
        const oldest = sessions[0]
        if (oldest === undefined) break
        oldest.end('REPLACED', 'a newer channel of this node is open')
        ended(oldest)
      }
      return session
    },
    ended,
    of: (node) => byNode.get(node) ?? [],
    *all() {
      for (const sessions of byNode.values()) yield* sessions
    },
    count: () => open,
    onAbsent: (run) => void absent.push(run),
  }
}
