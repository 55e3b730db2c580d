// The open connections of one server: whose they are, which of them may stay, and how much their peers have not read.
// Connections that have proven nothing count for their source; a proven one counts for its caller instead, so that a
// fleet behind one address is not limited by it.

import type { Socket } from 'node:net'
import { proxiedCaller } from './caller-address.ts'
import { openSourcePace, paceTickMs } from './source-pace.ts'
import { openSourceShares, sourceOf } from './source-shares.ts'
import type { Timers } from './timers.ts'

export const cutReasons = [
  'source_pace',
  'source_share',
  'caller_share',
  'handshakes',
  'pipelined',
  'unread',
  'overlong',
] as const
/**
 * Why a connection was closed. `source_pace`: earlier ones of its source led to nothing; `source_share`: its source holds
 * too many; `caller_share`: an authenticated caller does; `handshakes`: too many are unfinished; `pipelined`: it sent
 * requests without waiting for answers; `unread`: it did not read its answer; `overlong`: it went on sending its body after
 * it was answered.
 */
export type CutReason = (typeof cutReasons)[number]

export type ConnectionLimits = {
  readonly connections: number
  /** Most connections of one source that have proven nothing, below its share; null: its share. */
  readonly perSource: number | null
  /** Most connections of one authenticated caller, below its share; null: its share. */
  readonly perCaller: number | null
  readonly timers: Timers
  readonly onCut: (reason: CutReason, source: string) => void
}

export type Connection = {
  /** Where it comes from, as a load balancer says where there is one; a Unix socket has no source. */
  readonly source: string | null
  /** What HTTP is spoken on: the TCP socket, or the TLS socket above it. */
  socket: Socket
  caller: string | null
  handshaking: boolean
  /** A request is being answered, or its answer is not yet handed to the kernel. */
  answering: boolean
  /** A WebSocket channel has it. The channel has bounds of its own. */
  channel: boolean
  closed: boolean
  /** Bytes received when the last answer was complete; null: there was none yet. */
  readAtLastAnswer: number | null
  /** It was answered before its request was complete, as a body that is too large is: charged, and makes up for nothing. */
  sentTooMuch: boolean
  /** Its answer is sent piece by piece, and its sender sees to it that the peer reads. */
  streaming: boolean
  /** Sweeps since its peer was first seen not to read. */
  unreadSweeps: number
}

export type Connections = {
  /** Null: its source holds too many, and it was closed. */
  open(socket: Socket, handshaking: boolean): Connection | null
  /** The handshake is done; `socket` is what HTTP is spoken on from now. */
  secured(connection: Connection, socket: Socket): void
  cut(connection: Connection, reason: CutReason): void
  /** Closes those that wait for a request: nothing of theirs is under way. */
  closeIdle(): void
  began(connection: Connection): void
  /** `whole`: the request had been received completely. */
  answered(connection: Connection, whole: boolean): void
  close(): void
}

const sweepEveryMs = 1000
/** A peer has this long to read an answer, and a second more for every 16 KiB of it. */
const unreadSweeps = 10
const readPerSweep = 16 * 1024
/** Of all connections together. Beyond it those with the most unread bytes are closed first. */
const mostUnread = 32 * 1024 * 1024
const relieveEvery = 16
/** Of a body whose request is answered already. An honest caller stops when it has read its answer. */
const mostAfterAnswer = 256 * 1024
const mostHandshakes = 4096
/** A thousand requests in one write cost as much as this number of handshakes. */
const pipelinedWeight = 10
/** The search for an idle connection is bounded: it is made for each connection beyond a share. */
const idleLookedAt = 8

const mark: unique symbol = Symbol('connection')
type Marked = { readonly [mark]?: { readonly connection: Connection; proven(caller: string): void } }

export const connectionOf = (socket: object): Connection | null => (socket as Marked)[mark]?.connection ?? null

/** Its caller has authenticated: the connection counts for that caller from now on, and no longer for its source. */
export const provenConnection = (socket: object, caller: string): void => (socket as Marked)[mark]?.proven(caller)

/** False: answers are outstanding, which a channel would be mixed up with. */
export const mayBecomeChannel = (socket: object): boolean => connectionOf(socket)?.answering !== true

/** A refusal was written to the bare socket, as of an upgrade: its peer has got an answer. */
export const refusedUpgrade = (socket: object): void => {
  const connection = connectionOf(socket)
  if (connection !== null) connection.readAtLastAnswer = connection.socket.bytesRead
}

/** Until its answer is complete. Something of it is always unsent, however fast its peer reads. */
export const streamsAnswer = (socket: object): void => {
  const connection = connectionOf(socket)
  if (connection !== null) connection.streaming = true
}

export const becameChannel = (socket: object): void => {
  const connection = connectionOf(socket)
  if (connection !== null) connection.channel = true
}

export const openConnections = (limits: ConnectionLimits): Connections => {
  const open = new Set<Connection>()
  /** In the order in which they began. */
  const handshakes = new Set<Connection>()
  const handshakeLimit = Math.min(mostHandshakes, Math.max(16, Math.floor(limits.connections / 2)))
  const bySource = openSourceShares(limits.perSource)
  const pace = openSourcePace()
  const byCaller = openSourceShares(limits.perCaller)
  const handshakesBySource = openSourceShares(Math.floor(handshakeLimit / 2))
  const answering = new Set<Connection>()
  /** Answered and kept by their peers, by the caller or else the source that they count for. */
  const kept = new Map<string, Set<Connection>>()
  let requests = 0
  const free = (): number => limits.connections - open.size

  const cut = (connection: Connection, reason: CutReason): void => {
    if (connection.closed) return
    limits.onCut(reason, connection.source ?? 'local')
    if (reason === 'pipelined') offended(connection, pipelinedWeight)
    // A handshake that others have to make room for has cost something, however far it had come.
    forget(connection, reason === 'handshakes')
    connection.socket.destroy()
  }
  const forget = (connection: Connection, hasCost = false): void => {
    if (connection.closed) return
    connection.closed = true
    // One that sent nothing has cost nothing: load balancers check by connecting.
    const cost = hasCost || connection.socket.bytesRead > 0
    if (connection.readAtLastAnswer === null && !connection.channel) {
      if (cost) offended(connection)
    } else if (connection.source !== null && !connection.sentTooMuch) pace.credited(connection.source)
    open.delete(connection)
    answering.delete(connection)
    unkeep(connection)
    endHandshake(connection)
    if (connection.caller !== null) byCaller.remove(connection.caller)
    else if (connection.source !== null) bySource.remove(connection.source)
  }
  const offended = ({ source, caller }: Connection, weight = 1): void => {
    if (source !== null && caller === null) pace.offended(source, weight)
  }
  const endHandshake = (connection: Connection): void => {
    if (!handshakes.delete(connection)) return
    connection.handshaking = false
    if (connection.source !== null) handshakesBySource.remove(connection.source)
  }

  const keep = (connection: Connection): void => {
    const owner = connection.caller ?? connection.source
    if (owner === null || connection.closed) return
    const those = kept.get(owner) ?? new Set()
    kept.set(owner, those.add(connection))
  }
  const unkeep = (connection: Connection): void => {
    const owner = connection.caller ?? connection.source
    const those = owner === null ? undefined : kept.get(owner)
    if (owner !== null && those?.delete(connection) === true && those.size === 0) kept.delete(owner)
  }
  /**
   * A connection that is only kept for later makes room for the next one of the same owner. A copy of a node's certificate
   * could otherwise keep the node out by holding as many as one caller may have.
   */
  const closeIdleOf = (owner: string): boolean => {
    const idle = [...(kept.get(owner)?.values().take(idleLookedAt) ?? [])].find(isIdle)
    if (idle === undefined) return false
    forget(idle)
    idle.socket.destroy()
    return true
  }

  const refusedShare = (source: string, handshaking: boolean): CutReason | null => {
    if (!pace.admits(source)) return 'source_pace'
    if (handshaking && !handshakesBySource.fits(source, handshakeLimit)) return 'handshakes'
    if (bySource.fits(source, free())) return null
    return closeIdleOf(source) ? null : 'source_share'
  }

  const begin = (socket: Socket, source: string | null, handshaking: boolean): Connection => {
    const connection: Connection = {
      source,
      socket,
      caller: null,
      handshaking,
      answering: false,
      channel: false,
      closed: false,
      readAtLastAnswer: null,
      sentTooMuch: false,
      streaming: false,
      unreadSweeps: 0,
    }
    open.add(connection)
    if (source !== null) bySource.add(source)
    if (handshaking) {
      handshakes.add(connection)
      if (source !== null) handshakesBySource.add(source)
    }
    socket.once('close', () => forget(connection))
    markSocket(connection)
    return connection
  }
  const markSocket = (connection: Connection): void => {
    const marked: Marked = { [mark]: { connection, proven: (caller) => prove(connection, caller) } }
    Object.assign(connection.socket, marked)
  }
  const prove = (connection: Connection, caller: string): void => {
    if (connection.closed || connection.caller === caller) return
    if (!byCaller.fits(caller, free()) && !closeIdleOf(caller)) return cut(connection, 'caller_share')
    if (connection.caller !== null) byCaller.remove(connection.caller)
    else if (connection.source !== null) bySource.remove(connection.source)
    unkeep(connection)
    connection.caller = caller
    byCaller.add(caller)
  }

  const sweep = (): void => {
    for (const connection of open) {
      const isLookedAfter = connection.channel || connection.streaming || connection.handshaking
      const unread = isLookedAfter ? 0 : connection.socket.writableLength
      connection.unreadSweeps = unread === 0 ? 0 : connection.unreadSweeps + 1
      if (connection.unreadSweeps > unreadSweeps + unread / readPerSweep) cut(connection, 'unread')
      else if (sentAfterAnswer(connection) > mostAfterAnswer) cut(connection, 'overlong')
    }
    relieve()
  }
  const relieve = (): void => {
    let unread = 0
    for (const { socket } of answering) unread += socket.writableLength
    if (unread <= mostUnread) return
    for (const connection of [...answering].sort((a, b) => b.socket.writableLength - a.socket.writableLength)) {
      if (unread <= mostUnread / 2) return
      unread -= connection.socket.writableLength
      cut(connection, 'unread')
    }
  }

  const stopSweeps = limits.timers.every(sweepEveryMs, sweep)
  const stopTicks = limits.timers.every(paceTickMs, () => pace.tick())
  return {
    open(socket, handshaking) {
      const address = proxiedCaller(socket) ?? socket.remoteAddress
      const source = address === undefined ? null : sourceOf(address)
      const reason = source === null ? null : refusedShare(source, handshaking)
      if (reason !== null) {
        limits.onCut(reason, source ?? 'local')
        socket.on('error', () => {}).destroy()
        return null
      }
      const [oldest] = handshakes
      if (handshaking && handshakes.size >= handshakeLimit && oldest !== undefined) cut(oldest, 'handshakes')
      return begin(socket, source, handshaking)
    },
    secured(connection, socket) {
      endHandshake(connection)
      connection.socket = socket
      socket.once('close', () => forget(connection))
      markSocket(connection)
      if (connection.closed) socket.destroy()
    },
    cut,
    closeIdle() {
      for (const connection of open) {
        const { handshaking, socket, readAtLastAnswer } = connection
        const isFresh = readAtLastAnswer === null && socket.bytesRead === 0
        if (!handshaking && socket.writableLength === 0 && (isIdle(connection) || (isFresh && !connection.channel)))
          socket.destroy()
      }
    },
    began(connection) {
      connection.answering = true
      unkeep(connection)
      answering.add(connection)
      requests += 1
      if (requests % relieveEvery === 0) relieve()
    },
    answered(connection, whole) {
      connection.sentTooMuch = !whole
      if (!whole) offended(connection)
      connection.answering = false
      connection.streaming = false
      connection.readAtLastAnswer = connection.socket.bytesRead
      answering.delete(connection)
      keep(connection)
    },
    close() {
      stopSweeps()
      stopTicks()
    },
  }
}

const sentAfterAnswer = ({ sentTooMuch, answering, readAtLastAnswer, socket }: Connection): number =>
  sentTooMuch && !answering && readAtLastAnswer !== null ? socket.bytesRead - readAtLastAnswer : 0

/** It was answered, and nothing has come since. */
const isIdle = ({ answering, readAtLastAnswer, socket, channel }: Connection): boolean =>
  !answering && !channel && readAtLastAnswer !== null && readAtLastAnswer === socket.bytesRead
