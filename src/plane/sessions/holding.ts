// The hold of a node's channel is written to the store before the channel opens, so that every other replica finds it (`Holds` in
// store/contract/replicas.ts). This file keeps it true: it names an open session, or none.

import type { NodeId } from '#domain/core/node.ts'
import type { HeldSession, Hold, Replicas } from '#plane/store/contract/replicas.ts'
import {
  answerReplicas,
  askReplica,
  lookUpWithinMs,
  movedQuestion,
  stayedQuestion,
} from '#plane/cluster/replica-questions.ts'
import { takeTurnsByKey } from '#plane/core/turns.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Session } from './session.ts'
import type { Core } from '#plane/core/core.ts'

export type Holding = {
  /**
   * One after the other for a node: between a hold and its session no other caller of this replica acts, and a question about the
   * node waits for what is under way.
   */
  inTurn<T>(node: NodeId, run: () => Promise<T>): Promise<T>
  /** Elsewhere; null: nowhere, or here. */
  elsewhere(node: NodeId): Promise<Hold | null>
  take(node: NodeId, session: HeldSession, over: Hold | null): Promise<'held' | Hold>
  /** No session came of a hold: what is open here is named again, and `before` looks after what it has. */
  giveBack(node: NodeId, session: number, before: Hold | null): void
  /** A channel has opened here and is held here. */
  moved(node: NodeId, before: Hold): void
  /** A channel of this node is open here without a hold in the store. */
  holdAgain(node: NodeId): void
}

/** Shorter than a lease: when a replica is given up, no other has an older channel of its nodes. */
const drainMs = 10_000
const notifyTries = 5

export const openHolding = (
  { clock, log }: Pick<Core, 'clock' | 'log'>,
  sessions: SessionRegistry,
  replicas: Replicas,
): Holding => {
  const { holds } = replicas
  const inTurn = takeTurnsByKey()
  // The session whose hold was taken last, of each node that has one here.
  const named = new Map<NodeId, number>()

  const take: Holding['take'] = async (node, session, over) => {
    try {
      const outcome = await holds.take(node, session, over)
      if (outcome === 'held') named.set(node, session.number)
      return outcome
    } catch (error) {
      // It may have been written all the same.
      holds.release(node, session.number)
      throw error
    }
  }

  const settle = async (node: NodeId, isNamed: (number: number) => boolean): Promise<void> => {
    const newest = sessions.of(node).at(-1)
    const number = named.get(node)
    if (newest === undefined) {
      named.delete(node)
      if (number !== undefined) holds.release(node, number)
      return
    }
    if (isNamed(newest.number)) return
    // Should it end meanwhile, its end is the next in line here.
    const outcome = await take(node, heldAs(newest), null)
    if (outcome === 'held') return
    named.delete(node)
    for (const session of sessions.of(node)) session.end('REPLACED', 'another process of this node has taken its place')
  }
  const settleInTurn = (node: NodeId, isNamed = (number: number) => named.get(node) === number): void => {
    inTurn(node, () => settle(node, isNamed)).catch((error: unknown) =>
      log.warn({ err: error, node }, 'it could not be noted where the channel of a node is'),
    )
  }
  const holdAgain = (node: NodeId): void => settleInTurn(node, () => false)
  sessions.onEnd((node) => settleInTurn(node))

  answerReplicas(replicas, movedQuestion, async ({ node, upTo }) => {
    const untilMs = clock.monotonicMs() + drainMs
    for (const session of sessions.of(node)) if (session.number <= upTo) session.drainedAtMs = untilMs
    return null
  })
  answerReplicas(replicas, stayedQuestion, async ({ node }) => {
    if (sessions.of(node).length > 0) holdAgain(node)
    return null
  })

  const tell = async (before: Hold, about: () => ReturnType<Replicas['ask']>): Promise<void> => {
    if (before.replica === replicas.self) return
    for (let attempt = 0; attempt < notifyTries; attempt++) if ((await about()).kind !== 'no-answer') return
    log.warn({ replica: before.replica }, 'a replica could not be notified that the channel of a node has moved')
  }
  const logged = (notified: Promise<void>): void =>
    void notified.catch((error: unknown) =>
      log.warn({ err: error }, 'another replica could not be notified of a channel'),
    )

  return {
    inTurn,
    async elsewhere(node) {
      const hold = await holds.of(node)
      return hold === null || hold.replica === replicas.self ? null : hold
    },
    take,
    giveBack(node, session, before) {
      holds.release(node, session)
      if (named.get(node) === session) named.delete(node)
      if (sessions.of(node).length > 0) return holdAgain(node)
      if (before === null) return
      logged(tell(before, () => askReplica(replicas, before.replica, stayedQuestion, { node }, lookUpWithinMs)))
    },
    moved(node, before) {
      const moved = { node, upTo: before.number }
      logged(tell(before, () => askReplica(replicas, before.replica, movedQuestion, moved, lookUpWithinMs)))
    },
    holdAgain,
  }
}

const heldAs = ({ number, process }: Session): HeldSession => ({ number, instance: process })
