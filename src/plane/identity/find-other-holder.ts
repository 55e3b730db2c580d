// Does another process than the caller hold this identity, now? Two processes are told apart by their instance, which a
// copied folder does not have. A process that names its instance names it always, so a caller that names none is not that
// process; a channel that names none may be anybody's. Where the channel is on another replica, that one is asked.

import type { NodeId } from '#domain/core/node.ts'
import type { AwaitReturn, FindOtherHolder, HasChannel, LiveHolder } from './live-holder.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'
import { sleep, type Timers } from '#platform/timers.ts'
import type { Holding } from '#plane/sessions/holding.ts'
import { silenceMs, silentRounds } from '#plane/liveness/probe.ts'
import {
  answerReplicas,
  askReplica,
  lookUpWithinMs,
  makeRoomQuestion,
  otherHolderQuestion,
} from '#plane/cluster/replica-questions.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Silence } from '#plane/liveness/silence.ts'

export type OtherHolderDeps = {
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly holding: Pick<Holding, 'inTurn' | 'elsewhere'>
  readonly replicas: Replicas
  readonly clock: Clock
  readonly timers: Timers
}

/** The holder may be gone when it is asked, and another be there by then; not often. */
const hops = 3

export const openFindOtherHolder = ({
  sessions,
  holding,
  replicas,
  clock,
  timers,
}: OtherHolderDeps): FindOtherHolder => {
  // One probe a channel at a time, however many ask.
  const underWay = new Map<Session, Promise<boolean>>()

  const heard = (session: Session): Promise<boolean> =>
    new Promise((resolve) => {
      const cancel = timers.after(silenceMs, () => resolve(false))
      session.onceHeard(() => {
        cancel()
        resolve(true)
      })
      session.ping(clock.monotonicMs())
    })

  const ask = async (session: Session): Promise<boolean> => {
    for (let round = 0; round < silentRounds && session.alive; round++) {
      if (await heard(session)) return true
    }
    return false
  }

  const answers = (session: Session): Promise<boolean> => {
    const running = underWay.get(session)
    if (running !== undefined) return running
    const started = ask(session).finally(() => underWay.delete(session))
    underWay.set(session, started)
    return started
  }

  const here = async (node: NodeId, instance: string | null): Promise<LiveHolder | null> => {
    const others = otherSessions(sessions, node, instance)
    if (others.length === 0) return null
    const found = await Promise.all(others.map(async (session) => ((await answers(session)) ? session : null)))
    const live = found.find((session) => session !== null && session.alive) ?? null
    return live === null ? null : holderOf(live)
  }

  /** Whoever has taken the place of a process elsewhere has had its channel ended here. */
  const isHeldHere = (node: NodeId, instance: string | null): boolean =>
    instance !== null &&
    sessions.of(node).some(({ drainedAtMs, evidence }) => drainedAtMs === null && evidence?.instance === instance)

  answerReplicas(replicas, otherHolderQuestion, async ({ node, instance }) => {
    // A channel that is being opened has been claimed already, and is there when its turn is over.
    await holding.inTurn(node, async () => {})
    return here(node, instance)
  })
  answerReplicas(replicas, makeRoomQuestion, ({ node, instance }) =>
    holding.inTurn(node, async () => endReplaced(otherSessions(sessions, node, instance))),
  )

  return async (node, instance) => {
    const live = await here(node, instance)
    if (live !== null || isHeldHere(node, instance)) return live
    for (let hop = 0; hop < hops; hop++) {
      const holder = await holding.elsewhere(node)
      if (holder === null || holder.instance === null || holder.instance === instance) return null
      const asked = await askReplica(replicas, holder.replica, otherHolderQuestion, { node, instance }, pingsWithinMs)
      if (asked.kind === 'answer') return asked.value
      if (asked.kind === 'no-answer') return 'unknown'
    }
    return 'unknown'
  }
}

/** As long as the pings take, and the question. */
const pingsWithinMs = silentRounds * silenceMs + lookUpWithinMs

/** How many. */
export const endReplaced = (others: readonly Session[]): number => {
  for (const session of others) session.end('REPLACED', 'another process of this node has taken its place')
  return others.length
}

/** The channels of the node that another process has open here, whether it answers or not. */
export const otherSessions = (
  sessions: Pick<SessionRegistry, 'of'>,
  node: NodeId,
  instance: string | null,
): readonly Session[] => sessions.of(node).filter(({ evidence }) => evidence !== null && evidence.instance !== instance)

export const openHasChannel =
  ({ sessions, holding }: Pick<OtherHolderDeps, 'sessions' | 'holding'>): HasChannel =>
  async (node, instance) =>
    sessions.of(node).some(({ alive, evidence }) => alive && evidence?.instance === instance) ||
    (await holding.elsewhere(node))?.instance === instance

export type AwaitReturnDeps = Pick<OtherHolderDeps, 'sessions' | 'replicas' | 'timers'> & {
  readonly store: Pick<Store, 'get'>
  readonly silence: Silence
}

/** As long as a probe would wait: the silence began when the last channel ended, or the plane started. */
export const openAwaitReturn =
  ({ sessions, replicas, timers, store, silence }: AwaitReturnDeps): AwaitReturn =>
  async (node) => {
    if (sessions.of(node).length > 0 || (await replicas.holders.of(node)) !== null) return 'nothing'
    const row = await store.get('node', node)
    if (row === null || row.value.membership.kind !== 'active') return 'nothing'
    const silentMs = await silence.of(node)
    if (silentMs === 'unknown') return 'unknown'
    const leftMs = silentRounds * silenceMs - silentMs
    if (leftMs <= 0) return 'nothing'
    await sleep(timers, leftMs)
    return 'waited'
  }

const holderOf = ({ evidence, principal }: Session): LiveHolder => ({
  evidence,
  source: principal.source,
  serial: principal.proof.serial,
})
