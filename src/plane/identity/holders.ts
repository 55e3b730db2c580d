// Which processes hold an identity now. Two processes are distinguished by their instance id, which a copied folder does not have.
// A process with an instance id always sends it, so a caller without one is another process; a channel without one may belong to
// any process. Long-polls without one are distinguished by the address that they come from. Where the channel is on another replica,
// that one is asked.

import type { Node, NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { slotNameOf, slotsOf } from '#domain/core/certificate.ts'
import {
  answerReplicas,
  askReplica,
  lastHolderQuestion,
  lookUpWithinMs,
  makeRoomQuestion,
  otherHolderQuestion,
} from '#plane/cluster/replica-questions.ts'
import { silenceMs, silentRounds } from '#plane/liveness/probe.ts'
import type { Silence } from '#plane/liveness/silence.ts'
import type { Holding } from '#plane/sessions/holding.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { sleep } from '#platform/timers.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { Core } from '#plane/core/core.ts'

/** `unknown`: a replica that may have the channel does not answer, and nothing may be concluded. */
export type IdentityHolders = {
  /**
   * The holder of a live channel whose process is another than `instance`, pinged and found answering; null: there is none.
   * Where `instance` is null, any process that names its own is another.
   */
  other(node: NodeId, instance: string | null): Promise<LiveHolder | null | 'unknown'>
  /** Whether this process has a channel of the node open, on any replica. */
  isConnected(node: NodeId, instance: string): Promise<boolean>
  /**
   * True when this process is known to have moved on to the node's current certificate. A request of that very process that
   * comes late, on a connection from before its last rotation, is not another holder's.
   */
  isCurrent(node: Node, instance: string): Promise<boolean | 'unknown'>
  /**
   * Waits for a node whose channel ended a moment ago, or whose plane has just started. `waited`: there was something to
   * wait for, and the caller has to look again.
   */
  awaitReturn(node: NodeId): Promise<'waited' | 'nothing' | 'unknown'>
  /** A channel of the node was opened here. */
  opened(session: Session, node: Node): void
}

export type LiveHolder = {
  readonly evidence: AgentEvidence | null
  readonly source: string
  readonly serial: string
}

/** Never admission: within the time of a lease the other replica answers, or is given up. */
export const holderUnknown = (node: NodeId): Refusal => ({
  ...refuse('UNAVAILABLE', 'the replica of the plane that holds the channel of this node does not answer'),
  retryAfterMs: 3000,
  about: { node },
})

type HolderCore = Pick<Core, 'store' | 'clock' | 'timers'>

export type HolderParts = {
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly holding: Pick<Holding, 'inTurn' | 'elsewhere'>
  readonly replicas: Replicas
  readonly silence: Pick<Silence, 'of'>
}

export const openHolders = (core: HolderCore, parts: HolderParts): IdentityHolders => ({
  other: openFindOther(core, parts),
  isConnected: async (node, instance) =>
    parts.sessions.of(node).some(({ alive, evidence }) => alive && evidence?.instance === instance) ||
    (await parts.holding.elsewhere(node))?.instance === instance,
  ...openCurrentHolders(core.store, parts),
  awaitReturn: (node) => awaitReturn(core, parts, node),
})

/** The holder may be gone when it is asked, and another be there by then; not often. */
const hops = 3

const openFindOther = (
  { clock, timers }: HolderCore,
  { sessions, holding, replicas }: HolderParts,
): IdentityHolders['other'] => {
  // One probe a channel at a time, however many ask.
  const underWay = new Map<Session, Promise<boolean>>()

  const answersPing = (session: Session): Promise<boolean> =>
    new Promise((resolve) => {
      const cancel = timers.after(silenceMs, () => resolve(false))
      session.onceReceived(() => {
        cancel()
        resolve(true)
      })
      session.ping(clock.monotonicMs())
    })

  const ask = async (session: Session): Promise<boolean> => {
    for (let round = 0; round < silentRounds && session.alive; round++) {
      if (await answersPing(session)) return true
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

  /** A process that took the place of this one elsewhere has had the channel here ended. */
  const isHeldHere = (node: NodeId, instance: string | null): boolean =>
    instance !== null &&
    sessions.of(node).some(({ drainedAtMs, process }) => drainedAtMs === null && process === instance)

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

/** Returns how many it has ended. */
export const endReplaced = (others: readonly Session[]): number => {
  for (const session of others) session.end('REPLACED', 'another process of this node has taken its place')
  return others.length
}

/**
 * The channels of the node that another process has open here, whether it answers or not. Where `instance` is null the caller may be
 * the process of a long-poll without evidence.
 */
export const otherSessions = (
  sessions: Pick<SessionRegistry, 'of'>,
  node: NodeId,
  instance: string | null,
): readonly Session[] =>
  sessions
    .of(node)
    .filter(
      ({ process, evidence }) => process !== null && process !== instance && !(instance === null && evidence === null),
    )

/** As long as a probe would wait: the silence began when the last channel ended, or the plane started. */
const awaitReturn = async (
  { store, timers }: HolderCore,
  { sessions, replicas, silence }: HolderParts,
  node: NodeId,
): ReturnType<IdentityHolders['awaitReturn']> => {
  if (sessions.of(node).length > 0 || (await replicas.holds.of(node)) !== null) return 'nothing'
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
  serial: principal.credential.serial,
})

/** Which process last had a channel with the current certificate of its node. */
const openCurrentHolders = (
  store: Store,
  { holding, replicas }: HolderParts,
): Pick<IdentityHolders, 'isCurrent' | 'opened'> => {
  // One for every node that has had a channel here.
  const holders = new Map<NodeId, { readonly instance: string; readonly serial: string }>()

  /** Null: what is known here is of another certificate, if anything is. Another process may have moved on, or moved. */
  const knownHere = (node: NodeId, instance: string, serial: string): boolean | null => {
    const known = holders.get(node)
    return known === undefined || known.serial !== serial ? null : known.instance === instance
  }
  answerReplicas(replicas, lastHolderQuestion, async ({ node, instance, serial }) => knownHere(node, instance, serial))

  const knownElsewhere = async (
    node: NodeId,
    instance: string,
    serial: string,
  ): Promise<boolean | null | 'unknown'> => {
    const holder = await holding.elsewhere(node)
    if (holder === null) return null
    const asks = { node, instance, serial }
    const asked = await askReplica(replicas, holder.replica, lastHolderQuestion, asks, lookUpWithinMs)
    if (asked.kind === 'answer') return asked.value
    return asked.kind === 'gone' ? null : 'unknown'
  }

  return {
    opened({ principal, evidence }, node) {
      const slots = slotsOf(node)
      const { issuer, serial } = principal.credential
      // A process that opens one with a certificate that has been replaced may be the copy.
      if (slots === null || slotNameOf(slots, issuer, serial) !== 'current') return
      if (evidence === null) holders.delete(node.id)
      else holders.set(node.id, { instance: evidence.instance, serial })
    },
    async isCurrent(node, instance) {
      const serial = slotsOf(node)?.current.serial
      if (serial === undefined) return false
      const known = knownHere(node.id, instance, serial) ?? (await knownElsewhere(node.id, instance, serial))
      if (known !== null) return known
      // After a restart of the plane, or when it was on another replica: what its agent said of itself last.
      const { report } = await store.observation(node.id)
      return report !== null && report.instance === instance && report.certificate.serial === serial
    },
  }
}
