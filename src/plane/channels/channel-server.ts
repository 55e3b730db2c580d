// Takes over an authenticated connection as a channel and answers what the agent says on it.

import { WebSocketServer, type WebSocket } from 'ws'
import type { NodePrincipal } from '#domain/principal.ts'
import type { Refusal } from '#domain/refusal.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import type { Duplex, IncomingMessage } from '#platform/tls-server.ts'
import type { Feed } from '#plane/feed/feed.ts'
import { notePersistence } from '#plane/flows/confirm-node.ts'
import { useCertificate } from '#plane/flows/use-certificate.ts'
import type { Issuer } from '#plane/issuer/issuer.ts'
import type { Store } from '#plane/store/store.ts'
import { channelFrameLimit, channelProtocol, pingEveryMs, type AgentFrame } from '#wire/channel.ts'
import { readFrame } from './channel-frames.ts'
import { configurationOf, trustOf } from './configuration.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Session } from './session.ts'
import type { Log } from '#platform/log.ts'

export type ChannelDeps = {
  readonly store: Store
  readonly feed: Feed
  readonly clock: Clock
  readonly issuer: Issuer
  readonly sessions: SessionRegistry
  readonly log: Log
  readonly nodeUrl: () => string
  /** Asked in the very turn a session is registered: a denial committed while it was opening must not miss it. */
  readonly stillWelcome: (principal: NodePrincipal) => boolean
}

export type ChannelServer = {
  open(
    principal: NodePrincipal,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    correlation: string,
  ): Promise<Refusal | 'opened'>
}

export const openChannelServer = (deps: ChannelDeps): ChannelServer => {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: channelFrameLimit,
    handleProtocols: (offered) => (offered.has(channelProtocol) ? channelProtocol : false),
  })

  return {
    async open(principal, request, socket, head, correlation) {
      const standing = await useCertificate(deps, principal, correlation)
      if (standing.kind === 'refused') return standing
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const session = deps.sessions.open(webSocket, principal)
        if (!deps.stillWelcome(principal)) {
          session.end('CLIENT_CERT_DENIED', null)
          return deps.sessions.ended(session)
        }
        attend(deps, session, webSocket)
        session.send({
          type: 'hello',
          body: {
            server_time: isoTime(deps.clock.nowMs()),
            session: session.number,
            capabilities: [],
            ping_every_ms: pingEveryMs,
          },
        })
      })
      return 'opened'
    },
  }
}

const attend = (deps: ChannelDeps, session: Session, socket: WebSocket): void => {
  const { id } = session.principal
  const seen = (): void => {
    session.heard(deps.clock.monotonicMs())
    deps.store.observe(id, { lastSeenMs: deps.clock.nowMs() })
  }
  seen()
  socket.on('pong', seen)
  socket.on('ping', seen)
  socket.on('error', () => session.destroy())
  socket.on('close', () => {
    session.destroy()
    deps.sessions.ended(session)
  })
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    // After the decision to end a channel nothing it still delivers is looked at.
    if (!session.alive) return
    seen()
    if (isBinary) return session.end('REQUEST_INVALID', 'no binary stream is open')
    receive(deps, session, data.toString('utf8')).catch((error: unknown) => {
      deps.log.error({ err: error, node: id }, 'a channel frame could not be handled')
      session.end('UNAVAILABLE', null)
    })
  })
}

const receive = async (deps: ChannelDeps, session: Session, text: string): Promise<void> => {
  const read = readFrame(text)
  if (read.kind === 'malformed') return session.end('REQUEST_INVALID', 'the frame does not fit the schema')
  if (!session.accept(read.kind === 'frame' ? read.frame.seq : read.seq)) {
    return session.end('REQUEST_INVALID', 'frames are out of order')
  }
  if (read.kind === 'unknown') return session.send({ type: 'unknown_type', body: { type: read.type } })
  return handle(deps, session, read.frame)
}

const handle = async (deps: ChannelDeps, session: Session, frame: AgentFrame): Promise<void> => {
  const { principal } = session
  switch (frame.type) {
    case 'hello':
      deps.store.observe(principal.id, {
        agentVersion: frame.body.agent_version,
        source: principal.source,
        configRevision: frame.body.config_revision,
      })
      return bringUpToDate(deps, session, frame.body.config_revision, frame.body.trust_revision)
    case 'applied':
      deps.store.observe(principal.id, { configRevision: frame.body.config_revision })
      return notePersistence(deps, principal, frame.body, `session-${session.number}`)
    case 'unknown_type':
      return
  }
}

/** Sends what the agent does not have yet. */
export const bringUpToDate = async (
  deps: Pick<ChannelDeps, 'store' | 'issuer' | 'nodeUrl'>,
  session: Session,
  configRevision: number,
  trustRevision: number,
): Promise<void> => {
  const node = await deps.store.get('node', session.principal.id)
  const profile = node === null ? null : await deps.store.get('profile', node.value.profile)
  const domain = await deps.store.get('domain', 'domain')
  if (node === null || profile === null || domain === null) return
  const config = configurationOf(node.value, profile, domain, deps.nodeUrl())
  const trust = trustOf(deps.issuer)
  if (trust.revision !== trustRevision) session.send({ type: 'trust', body: trust })
  if (config.revision !== configRevision) session.send({ type: 'config', body: config })
}
