// One channel: a WebSocket with our certificate, from the handshake to its end. Reconnecting is keep-channel.ts.

import type { Clock } from '#platform/clock.ts'
import type { Cancel, Timers } from '#platform/timers.ts'
import { openWebSocket } from '#platform/web-socket-client.ts'
import {
  channelFrameLimit,
  channelProtocol,
  pingEveryMs,
  pongWithinMs,
  type AgentFrame,
  type PlaneConfig,
  type PlaneHello,
  type PlaneTrust,
} from '#wire/channel.ts'
import { agentVersion } from '../agent-version.ts'
import type { Identity } from '../identity/credentials.ts'
import { failureFrom, refusalFrom, type PlaneFailure } from '../plane-failure.ts'
import { readPlaneFrame } from './plane-frame.ts'

export type Revisions = { readonly config_revision: number; readonly trust_revision: number }

/** What the agent runs under after a frame, and whether it could be kept. */
export type Applied = Revisions & { readonly persisted: boolean; readonly detail: string | null }

export type ChannelUser = {
  revisions(): Revisions
  config(config: PlaneConfig): Applied
  trust(trust: PlaneTrust): Applied
  /** A frame that could not be used; it is skipped. */
  complaint(why: string): void
}

export type ChannelEnd =
  /** It never opened. */
  | { readonly kind: 'failed'; readonly failure: PlaneFailure }
  /** It was open. `closing` is what the plane said before. */
  | { readonly kind: 'closed'; readonly why: string; readonly closing: string | null }

export type Channel = {
  /** The plane has said hello. Null when it ended before. */
  readonly opened: Promise<PlaneHello | null>
  readonly ended: Promise<ChannelEnd>
  close(): void
}

type ChannelDeps = { readonly clock: Clock; readonly timers: Timers }

const handshakeTimeoutMs = 15_000
const closeWithinMs = 2_000
/** The plane reads slowly or not at all: nothing we send is worth keeping then. */
const mostWaitingBytes = 1 << 20

export const openChannel = (deps: ChannelDeps, identity: Identity, url: string, user: ChannelUser): Channel => {
  const opened = Promise.withResolvers<PlaneHello | null>()
  const ended = Promise.withResolvers<ChannelEnd>()
  const cancels = new Set<Cancel>()
  let hello = false
  let closing: string | null = null
  let sent = 0
  let handled = 0
  let heardAtMs = deps.clock.monotonicMs()

  const end = (how: ChannelEnd): void => {
    for (const cancel of cancels) cancel()
    opened.resolve(null)
    ended.resolve(how)
  }
  const closed = (why: string): ChannelEnd =>
    hello
      ? { kind: 'closed', why, closing }
      : { kind: 'failed', failure: failureFrom(new Error(why), url, deps.clock.nowMs()) }

  const socket = openWebSocket(
    {
      url,
      protocol: channelProtocol,
      ca: identity.roots,
      cert: identity.current.chainPem,
      key: identity.current.keyPem,
      longestMessage: channelFrameLimit,
      handshakeTimeoutMs,
    },
    {
      opened: () => {
        heardAtMs = deps.clock.monotonicMs()
        send('hello', { agent_version: agentVersion, capabilities: [], ...user.revisions() })
      },
      heard: () => {
        heardAtMs = deps.clock.monotonicMs()
      },
      binary: () => user.complaint('a binary frame, which this agent does not take'),
      text: (message) => receive(message),
      refused: (status, retryAfter, body) => end({ kind: 'failed', failure: refusalFrom(status, retryAfter, body) }),
      failed: (error) =>
        end(hello ? closed(error.message) : { kind: 'failed', failure: failureFrom(error, url, deps.clock.nowMs()) }),
      closed: (code, reason) => end(closed(`closed with ${code}${reason === '' ? '' : `: ${reason.slice(0, 128)}`}`)),
    },
  )
  // A plane that takes the upgrade and then says nothing is as good as none.
  cancels.add(deps.timers.after(handshakeTimeoutMs * 2, () => void (hello || socket.destroy()), 'background'))

  const send = <T extends AgentFrame['type']>(type: T, body: Extract<AgentFrame, { type: T }>['body']): void => {
    if (socket.waitingBytes() > mostWaitingBytes) return socket.destroy()
    sent += 1
    socket.send(JSON.stringify({ stream: 0, seq: sent, ack: handled, type, body }))
  }

  const watch = (planePingsEveryMs: number): void => {
    const everyMs = Math.min(planePingsEveryMs, pingEveryMs)
    const silenceMs = Math.min(pongWithinMs, 3 * everyMs)
    cancels.add(
      deps.timers.every(everyMs, () => {
        if (deps.clock.monotonicMs() - heardAtMs > silenceMs) socket.destroy()
        else socket.ping()
      }),
    )
  }

  const receive = (message: string): void => {
    const read = readPlaneFrame(message)
    if (read.kind === 'malformed') return user.complaint(read.why)
    if (read.kind === 'unknown') {
      handled = Math.max(handled, read.seq)
      return send('unknown_type', { type: read.type })
    }
    const { frame } = read
    handled = Math.max(handled, frame.seq)
    switch (frame.type) {
      case 'hello':
        if (!hello) watch(frame.body.ping_every_ms)
        hello = true
        return opened.resolve(frame.body)
      case 'config':
        return send('applied', user.config(frame.body))
      case 'trust':
        return send('applied', user.trust(frame.body))
      case 'closing':
        closing = frame.body.code
        return
      case 'unknown_type':
        return user.complaint(`the plane does not know frames of type ${frame.body.type}`)
    }
  }

  return {
    opened: opened.promise,
    ended: ended.promise,
    close: () => {
      cancels.add(deps.timers.after(closeWithinMs, () => socket.destroy(), 'background'))
      socket.close(1000, '')
    },
  }
}
