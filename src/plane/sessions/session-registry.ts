// Every channel that is open on this replica, by node. An epoch may hold two at once (current and pending certificate);
// the older drains until a deadline. They last as long as the lease of the replica: after that every look finds none.

import type { NodeId } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { Session, type SessionFacts, type SessionSocket } from './session.ts'

export type SessionRegistry = {
  /** Unique among all replicas, and higher than any given here before. */
  nextNumber(): number
  open(
    socket: SessionSocket,
    principal: NodePrincipal,
    evidence: AgentEvidence | null,
    number: number,
    poll?: Pick<SessionFacts, 'patience' | 'process'>,
  ): Session
  /** Oldest first. Sessions that have ended are not among them. */
  of(node: NodeId): readonly Session[]
  all(): Iterable<Session>
  count(): number
  /** Called when a channel has ended. */
  onEnd(run: (node: NodeId, session: Session) => void): void
  /** Called when a node's last channel has ended. */
  onAbsent(run: (node: NodeId, last: Session) => void): void
  /** False: the lease of this replica is over, and every session has ended in this turn at the latest. */
  mayGoOn(): boolean
  /** Ends them all, and no other may be opened. */
  close(code: string, detail: string): void
  isClosed(): boolean
}

/** More channels of one node than these are a loop in its agent, not a rotation. */
const mostPerNode = 2
/** Replicas take turns in the numbers: those that run at once are numbered closely. */
const stride = 256

export const openSessionRegistry = (clock: Clock, replicas: Pick<Replicas, 'self' | 'standing'>): SessionRegistry => {
  const byNode = new Map<NodeId, readonly Session[]>()
  const ended: ((node: NodeId, session: Session) => void)[] = []
  const absent: ((node: NodeId, last: Session) => void)[] = []
  // Starts from the clock, so that a number is not given twice across restarts.
  let round = Math.floor((clock.nowMs() * 1000) / stride)
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
    if (rest.length > 0) byNode.set(id, rest)
    else byNode.delete(id)
    for (const run of ended) run(id, session)
    if (rest.length === 0) for (const run of absent) run(id, session)
  }

  const endAll = (code: string, detail: string): void => {
    for (const session of [...all()]) session.end(code, detail)
  }

  const mayGoOn = (): boolean => {
    const { kind } = replicas.standing()
    if (kind === 'serving' || kind === 'behind') return true
    const why = kind === 'skewed' ? 'the clock of this replica is off' : 'this replica is behind the other replicas'
    if (open > 0) endAll('UNAVAILABLE', `${why}: connect again`)
    return false
  }

  return {
    nextNumber: () => ++round * stride + (replicas.self % stride),
    open(socket, principal, evidence, number, poll) {
      if (closed) throw new Error('a channel was opened while the plane stops')
      const [openedAtMs, lastReceivedMs] = [clock.nowMs(), clock.monotonicMs()]
      const session = new Session(socket, {
        ...{ principal, evidence, number, openedAtMs, lastReceivedMs, mayGoOn, onEnd },
        ...poll,
      })
      const sessions = [...of(principal.id), session]
      byNode.set(principal.id, sessions)
      open++
      for (const older of sessions.slice(0, -mostPerNode)) older.end('REPLACED', 'a newer channel of this node is open')
      return session
    },
    of,
    all,
    count: () => open,
    onEnd: (run) => void ended.push(run),
    onAbsent: (run) => void absent.push(run),
    mayGoOn,
    close(code, detail) {
      closed = true
      endAll(code, detail)
    },
    isClosed: () => closed,
  }
}
