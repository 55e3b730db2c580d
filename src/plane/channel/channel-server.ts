// Takes over an authenticated connection as a channel.

import { outputsCapability } from '#wire/programs/programs-api.ts'
import { WebSocketServer, type WebSocket } from 'ws'
import { markedWord } from '#domain/core/plane-mark.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { isoTime } from '#platform/clock.ts'
import { destroyWhenSent, type Duplex, type IncomingMessage } from '#platform/tls-server.ts'
import { evidenceIn } from '#wire/core/agent-evidence.ts'
import {
  issuerRootsCapability,
  channelFrameLimit,
  channelProtocol,
  earlierSightingsCapability,
  pingEveryMs,
  sightingCapability,
} from '#wire/channel/channel.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { overlayCapability, overlayDetailsCapability } from '#wire/node/node-runs.ts'
import { connectionCapability } from '#wire/node/report.ts'
import { peersCapability } from '#wire/network/peers.ts'
import { tasksCapability } from '#wire/tasks/task-frames.ts'
import { limitToCertificate } from './cut-sessions.ts'
import { handleFrame, type FrameParts } from './handle-frame.ts'
import { openInbox } from './inbox.ts'
import { judgeUpgrade } from './judge-upgrade.ts'
import { openSession, type OpeningParts } from './open-session.ts'
import type { Session, SessionSocket } from '#plane/sessions/session.ts'
import type { ChannelParts } from './channel-parts.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

export type ServedParts = {
  readonly channel: FrameParts['channel'] & OpeningParts['channel'] & Pick<ChannelParts, 'presence' | 'holders'>
  readonly sightings: FrameParts['sightings']
  readonly tasks: FrameParts['tasks']
  readonly denyList: OpeningParts['denyList']
  readonly urls: () => Pick<PlaneUrls, 'marked'>
}

type ServedCore = FlowCore & Pick<Core, 'timers' | 'log'>

export type ChannelServer = {
  open(
    principal: NodePrincipal,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    correlation: string,
  ): Promise<Refusal | 'opened'>
}

export const openChannelServer = (core: ServedCore, parts: ServedParts): ChannelServer => {
  const { sessions, presence, holders } = parts.channel
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: channelFrameLimit,
    // A session answers itself, since it looks at how much is unread.
    autoPong: false,
    handleProtocols: () => channelProtocol,
  })

  return {
    async open(principal, request, socket, head, correlation) {
      const no = judgeUpgrade(request)
      if (no !== null) return no
      const evidence = evidenceIn(request.headers)
      const process = evidence === null ? null : evidence.instance
      const outcome = await openSession(core, parts, { principal, evidence, process, correlation }, (number, node) => {
        let opened: Session | null = null
        server.handleUpgrade(request, socket, head, (webSocket) => {
          presence.forget(principal.id)
          const session = sessions.open(withCut(core.timers, webSocket, socket), principal, evidence, number)
          opened = session
          holders.opened(session, node)
          limitToCertificate(session, node)
          attend(core, parts, session, webSocket)
        })
        return opened
      })
      return isRefusal(outcome) ? outcome : 'opened'
    },
  }
}

/** How long the other side has to read why its channel ends. */
const lastWordsMs = 1000

/**
 * Apart from where a channel is opened: it lives as long as the channel, and would keep the request, the node's row and the buffer they were
 * read into.
 */
const withCut = (timers: Core['timers'], webSocket: WebSocket, socket: Duplex): WebSocket & SessionSocket =>
  Object.assign(webSocket, { cut: () => destroyWhenSent(timers, socket, lastWordsMs) })

/** As an agent that stops closes it. */
const orderlyClose = 1000

const attend = (core: ServedCore, parts: ServedParts, session: Session, socket: WebSocket): void => {
  const { sessions } = parts.channel
  const { id } = session.principal
  const inbox = openInbox(core.timers, session, (text) =>
    handleFrame(core, parts, session, text).catch((error: unknown) => {
      core.log.error({ err: error, node: id }, 'a channel frame could not be handled')
      session.end('UNAVAILABLE', null)
    }),
  )
  /** False: the channel has ended, and what it still delivers is not looked at. */
  const seen = (): boolean => {
    if (!sessions.mayGoOn() || !session.alive) return false
    session.received(core.clock.monotonicMs())
    core.store.observe(id, { lastSeenMs: core.clock.nowMs() })
    return true
  }
  // Nothing it sends is read any more, and the library has sent the reason: a cut with unread bytes would lose it.
  socket.on('error', () => void core.timers.after(lastWordsMs, () => session.destroy()))
  socket.on('close', (code) => {
    session.closedByHolder = session.alive && code === orderlyClose
    session.destroy()
  })
  socket.on('pong', seen)
  socket.on('ping', (payload) => {
    if (seen()) inbox.ping(payload)
  })
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (!seen()) return
    if (isBinary) session.end('REQUEST_INVALID', 'no binary stream is open')
    else inbox.text(data.toString('utf8'))
  })
  seen()
  session.send({
    type: 'hello',
    body: {
      server_time: isoTime(core.clock.nowMs()),
      session: session.number,
      capabilities: [
        ...[sightingCapability, earlierSightingsCapability, peersCapability, connectionCapability],
        ...[overlayCapability, overlayDetailsCapability, outputsCapability, tasksCapability],
        issuerRootsCapability,
        ...(parts.urls().marked ? [markedWord] : []),
      ],
      ping_every_ms: pingEveryMs,
    },
  })
}
