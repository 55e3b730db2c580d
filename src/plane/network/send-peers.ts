// Keeps agents up to date with the WireGuard peers of their node: what changed, to those whose peers changed. What changes
// close together is sent together; a key that has gone is not waited with. Agents that never said what they have cost nothing.

import type { Peer } from '#domain/network/peer-set.ts'
import { sleep, turn } from '#platform/timers.ts'
import { channelFrameLimit } from '#wire/channel/channel.ts'
import { peerOnWire, type PlanePeers } from '#wire/network/peers.ts'
import type { Gate } from '#plane/cluster/gate.ts'
import type { PeerBook } from './peer-book.ts'
import type { PeerGroup, PeerOps } from './peer-group.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Core } from '#plane/core/core.ts'

export type SendPeersParts = {
  readonly book: PeerBook
  readonly sessions: Pick<SessionRegistry, 'of' | 'onEnd'>
  readonly gate: Pick<Gate, 'serves' | 'opened'>
}

export type SendPeers = {
  /** The agent has reported its set in force; from now on it gets changes. */
  has(session: Session, revision: string | null): void
  /** It has this one in force now. */
  applied(session: Session, revision: string): void
}

/** What an agent has, once it has taken in what it was sent. */
type PeerState = {
  /** The one whose changes concern it. */
  home: PeerGroup | null
  /** Undefined: not known, so that it is sent all of it. */
  group: PeerGroup | null | undefined
  at: number
  revision: string | null
  /** Parts are on their way: what changes meanwhile goes with them. */
  busy: boolean
  /** It has said meanwhile that it has something else: what is on its way does not help it. */
  astray: boolean
  /** When it was last sent all of it. */
  wholeAtMs: number
  /** It is too soon for that again, and its turn comes. */
  waits: boolean
  /** Sent and not confirmed, oldest first. */
  readonly awaited: { readonly group: PeerGroup; readonly at: number; readonly revision: string }[]
}

const togetherMs = 20
const sessionsPerTurn = 64
/** Whole sets that are being sent at once: each is a list of its own. */
const mostWholes = 16
/** An agent that asks for all of it again and again gets it so often. */
const wholeEveryMs = 1000
const mostAwaited = 256
/** Room for the rest of a frame. */
const partBytes = channelFrameLimit - 4 * 1024
/** An agent that has this much unread is waited for. */
const mostUnread = 96 * 1024
const lookAgainMs = 25
/** And no longer than this: an agent that hardly reads must not keep others from a whole set. */
const longestWaitMs = 30_000

const nothing = '0'.repeat(64)

export const openSendPeers = (
  { clock, timers }: Pick<Core, 'clock' | 'timers'>,
  { book, sessions, gate }: SendPeersParts,
): SendPeers => {
  const listening = new Map<Session, PeerState>()
  const byGroup = new Map<PeerGroup | null, Set<Session>>()
  const outdated = new Set<Session>()
  const forWhole = new Set<Session>()
  let wholes = 0
  let soon: (() => void) | null = null
  let busy = false

  const groupOf = ({ principal }: Session): PeerGroup | null => book.groupOf(principal.id)
  const settle = (session: Session, peer: PeerState): void => {
    byGroup.get(peer.home)?.delete(session)
    peer.home = groupOf(session)
    byGroup.set(peer.home, (byGroup.get(peer.home) ?? new Set()).add(session))
  }

  const work = async (): Promise<void> => {
    soon?.()
    soon = null
    if (busy) return
    busy = true
    let looked = 0
    for (const session of outdated) {
      // Out of touch: what is known here may be old.
      if (!gate.serves()) await gate.opened()
      outdated.delete(session)
      bringUpToDate(session)
      if (++looked % sessionsPerTurn === 0) await turn(timers)
    }
    busy = false
  }
  const start = (urgent: boolean): void => {
    if (urgent) void work()
    else soon ??= timers.after(togetherMs, () => void work())
  }

  const bringUpToDate = (session: Session): void => {
    const peer = listening.get(session)
    if (peer === undefined || peer.busy) return
    const group = groupOf(session)
    const { id } = session.principal
    const missed = peer.group === group && group !== null ? group.since(peer.at, id) : null
    if (missed === null) {
      if (group === null) return sendEmptyPeerSet(session, peer)
      const tooSoonMs = peer.wholeAtMs + wholeEveryMs - clock.monotonicMs()
      // Not of what the plane has changed: a node that is to be kept apart does not wait for it.
      if (peer.group === undefined && tooSoonMs > 0) return comeBack(session, peer, tooSoonMs)
      if (wholes >= mostWholes) return void forWhole.add(session)
      wholes++
      peer.wholeAtMs = clock.monotonicMs()
      const whole: PeerOps = new Map(group.others(id).map((peer) => [peer.publicKey, peer]))
      void deliver(session, peer, { group, at: group.at, base: null, ops: whole }).finally(() => {
        wholes--
        const [next] = forWhole
        if (next !== undefined) {
          forWhole.delete(next)
          bringUpToDate(next)
        }
      })
    } else if (missed.size > 0 && group !== null) {
      void deliver(session, peer, { group, at: group.at, base: peer.revision, ops: missed })
    }
  }

  const comeBack = (session: Session, peer: PeerState, afterMs: number): void => {
    if (peer.waits) return
    peer.waits = true
    const turn = (): void => {
      peer.waits = false
      mark([session], true)
    }
    timers.after(afterMs, turn, 'background')
  }

  /** A node that takes no part has no peers either. */
  const sendEmptyPeerSet = (session: Session, peer: PeerState): void => {
    peer.group = null
    if (peer.revision === nothing) return
    peer.revision = nothing
    session.send({ type: 'peers', body: { base: null, revision: nothing, remove: [], add: [], more: false } })
  }

  type Delivery = { readonly group: PeerGroup; at: number; readonly base: string | null; readonly ops: PeerOps }

  const deliver = async (session: Session, peer: PeerState, delivery: Delivery): Promise<void> => {
    const { group, base, ops } = delivery
    const { id } = session.principal
    peer.busy = true
    for (let more = true; more;) {
      const sinceMs = clock.monotonicMs()
      while (session.alive && session.unsentBytes > mostUnread) {
        if (clock.monotonicMs() - sinceMs > longestWaitMs)
          session.end('UNAVAILABLE', 'it does not read what it is sent')
        else await sleep(timers, lookAgainMs, 'background')
      }
      const news = group.since(delivery.at, id)
      if (!session.alive) break
      if (news === null) {
        session.end('UNAVAILABLE', 'its peers change faster than this channel takes them: connect again')
        break
      }
      for (const [key, peer] of news) ops.set(key, peer)
      delivery.at = group.at
      const revision = group.revisionFor(id)
      const part = takePart(ops)
      more = ops.size > 0
      session.send({ type: 'peers', body: { base, revision, ...part, more } })
      if (more) continue
      Object.assign(peer, { group, at: delivery.at, revision })
      peer.awaited.push({ group, at: delivery.at, revision })
      if (peer.awaited.length > mostAwaited) peer.awaited.shift()
    }
    peer.busy = false
    if (peer.astray) Object.assign(peer, { astray: false, group: undefined })
    // It may have been moved to another group since.
    if (peer.group !== groupOf(session) || group.at !== peer.at) mark([session], true)
  }

  const mark = (some: Iterable<Session>, urgent: boolean): void => {
    for (const session of some) if (session.alive) outdated.add(session)
    if (outdated.size > 0) start(urgent)
  }

  book.onChange(({ groups, moved, urgent }) => {
    const concerned: Session[] = []
    for (const session of [...moved].flatMap((node) => sessions.of(node))) {
      const peer = listening.get(session)
      if (peer === undefined) continue
      settle(session, peer)
      concerned.push(session)
    }
    for (const group of groups) concerned.push(...(byGroup.get(group) ?? []))
    mark(concerned, urgent)
  })
  sessions.onEnd((_node, session) => {
    const peer = listening.get(session)
    if (peer === undefined) return
    listening.delete(session)
    outdated.delete(session)
    forWhole.delete(session)
    byGroup.get(peer.home)?.delete(session)
  })

  return {
    has(session, revision) {
      const before = listening.get(session)
      if (before?.busy === true) {
        before.astray = true
        return
      }
      const group = groupOf(session)
      const at = group === null || revision === null ? null : group.positionOf(session.principal.id, revision)
      const known = group === null ? revision === nothing : at !== null
      const peer: PeerState = before ?? {
        ...{ home: group, group: undefined, at: 0, revision: null, busy: false, astray: false },
        ...{ wholeAtMs: -Infinity, waits: false, awaited: [] },
      }
      Object.assign(peer, { group: known ? group : undefined, at: at ?? 0, revision })
      peer.awaited.length = 0
      listening.set(session, peer)
      settle(session, peer)
      if (group !== null && at !== null && revision !== null) {
        group.confirmed(session.principal.id, { at, revision, atMs: clock.nowMs() })
      }
      mark([session], true)
    },
    applied(session, revision) {
      const awaited = listening.get(session)?.awaited ?? []
      const found = awaited.findIndex((sent) => sent.revision === revision)
      if (found === -1) return
      const [last] = awaited.splice(0, found + 1).slice(-1)
      if (last !== undefined) last.group.confirmed(session.principal.id, { at: last.at, revision, atMs: clock.nowMs() })
    },
  }
}

/** As much as one frame takes, removals first; what is taken is no longer among `ops`. */
const takePart = (ops: PeerOps): Pick<PlanePeers, 'remove' | 'add'> => {
  const remove: string[] = []
  const add: PlanePeers['add'] = []
  let room = partBytes
  for (const [key, peer] of ops) {
    if (peer !== null) continue
    room -= key.length + 3
    if (room < 0) return { remove, add }
    remove.push(key)
    ops.delete(key)
  }
  for (const peer of [...ops.values()] as Peer[]) {
    const one = peerOnWire(peer)
    room -= JSON.stringify(one).length + 1
    if (room < 0) break
    add.push(one)
    ops.delete(peer.publicKey)
  }
  return { remove, add }
}
