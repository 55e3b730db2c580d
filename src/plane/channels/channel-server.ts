// Takes over an authenticated connection as a channel.

import { WebSocketServer, type WebSocket } from 'ws'
import type { NodeId } from '#domain/node.ts'
import type { NodePrincipal } from '#domain/principal.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import { isoTime } from '#platform/clock.ts'
import type { Duplex, IncomingMessage } from '#platform/tls-server.ts'
import type { Timers } from '#platform/timers.ts'
import { refuseCopy, type CopyDeps } from '#plane/flows/refuse-copy.ts'
import { useCertificate } from '#plane/flows/use-certificate.ts'
import { evidenceIn, type AgentEvidence } from '#wire/agent-evidence.ts'
import { channelFrameLimit, channelProtocol, pingEveryMs } from '#wire/channel.ts'
import { limitToCertificate } from './cut-sessions.ts'
import { otherSessions } from './find-other-holder.ts'
import { handleFrame, type FrameDeps } from './handle-frame.ts'
import { openInbox } from './inbox.ts'
import { judgeUpgrade } from './judge-upgrade.ts'
import type { LastHolders } from './last-holders.ts'
import type { Presence } from './presence.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Session } from './session.ts'

export type ChannelDeps = FrameDeps &
  CopyDeps & {
    readonly timers: Timers
    readonly sessions: SessionRegistry
    readonly presence: Presence
    readonly lastHolders: Pick<LastHolders, 'opened'>
    /** Asked in the very turn a session is registered: a denial committed while it was opening must not miss it. */
    readonly denyList: {
      deniesIdentity(node: NodeId, epoch: number, certificate: NodePrincipal['proof']): boolean
    }
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
    // A session answers itself, since it looks at how much is unread.
    autoPong: false,
    handleProtocols: () => channelProtocol,
  })

  return {
    async open(principal, request, socket, head, correlation) {
      const no = judgeUpgrade(request)
      if (no !== null) return no
      const evidence = evidenceIn(request.headers)
      for (;;) {
        const standing = await settledStanding(deps, principal, evidence, correlation)
        if (standing.kind === 'refused') return standing
        // From here to the session in the registry is one turn: whatever is committed later finds it there.
        if (deps.sessions.isClosed()) return refuse('UNAVAILABLE', 'the plane is stopping')
        const { id, epoch, proof } = principal
        if (deps.denyList.deniesIdentity(id, epoch, proof)) return refuse('CLIENT_CERT_DENIED')
        // Another process was quicker: it is asked like any that was there before.
        if (otherSessions(deps.sessions, id, instanceOf(evidence)).length > 0) continue
        server.handleUpgrade(request, socket, head, (webSocket) => {
          deps.presence.forget(principal.id)
          const session = deps.sessions.open(webSocket, principal, evidence)
          deps.lastHolders.opened(session, standing.node.value)
          limitToCertificate(session, standing.node.value)
          attend(deps, session, webSocket)
        })
        return 'opened'
      }
    },
  }
}

/** The outcome of using the certificate, with no other process holding it and no lapse under way that would come after it. */
const settledStanding = async (
  deps: ChannelDeps,
  principal: NodePrincipal,
  evidence: AgentEvidence | null,
  correlation: string,
) => {
  for (;;) {
    const copy = await replaceSilent(deps, principal, evidence, correlation)
    if (copy !== null) return copy
    const standing = await useCertificate(deps, principal, correlation)
    const leaving = deps.presence.leaving(principal.id)
    if (standing.kind === 'refused' || leaving === null) return standing
    await leaving
  }
}

/** Null: nobody else is there, any more. A process that was killed leaves a channel that nobody answers on. */
const replaceSilent = async (
  deps: ChannelDeps,
  principal: NodePrincipal,
  evidence: AgentEvidence | null,
  correlation: string,
): Promise<Refusal | null> => {
  const others = otherSessions(deps.sessions, principal.id, instanceOf(evidence))
  if (others.length === 0) return null
  const copy = await refuseCopy(deps, {
    node: principal.id,
    source: principal.source,
    serial: principal.proof.serial,
    sign: 'second-instance',
    ...{ evidence, correlation },
  })
  if (copy !== null) return copy
  for (const session of others) session.end('REPLACED', 'another process of this node has taken its place')
  return null
}

const instanceOf = (evidence: AgentEvidence | null): string | null => (evidence === null ? null : evidence.instance)

const attend = (deps: ChannelDeps, session: Session, socket: WebSocket): void => {
  const { id } = session.principal
  const inbox = openInbox(deps.timers, session, (text) =>
    handleFrame(deps, session, text).catch((error: unknown) => {
      deps.log.error({ err: error, node: id }, 'a channel frame could not be handled')
      session.end('UNAVAILABLE', null)
    }),
  )
  /** False: the channel has ended, and what it still delivers is not looked at. */
  const seen = (): boolean => {
    if (!session.alive) return false
    session.heard(deps.clock.monotonicMs())
    deps.store.observe(id, { lastSeenMs: deps.clock.nowMs() })
    return true
  }
  socket.on('error', () => session.destroy())
  socket.on('close', () => session.destroy())
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
      server_time: isoTime(deps.clock.nowMs()),
      session: session.number,
      capabilities: [],
      ping_every_ms: pingEveryMs,
    },
  })
}
