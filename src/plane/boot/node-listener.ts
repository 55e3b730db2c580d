// The node listener: TLS 1.3, a client certificate asked for and judged in authn/ (which is why Node's own verdict is not
// asked, ruling 9), HTTP/1.1, and channels. HTTP calls and upgrades pass the same authentication and the same route table.

import { actorOf, type Principal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { boundServer } from '#platform/bounded-server.ts'
import {
  becameChannel,
  mayBecomeChannel,
  provenConnection,
  refusedUpgrade,
  type ConnectionLimits,
} from '#platform/connections.ts'
import { listenTcp, stopServer, type HttpRequest, type SharedAddress } from '#platform/http-server.ts'
import {
  createTlsServer,
  replaceServerIdentity,
  type Duplex,
  type HttpsServer,
  type TLSSocket,
} from '#platform/tls-server.ts'
import { readProxyHeaders, type Balancers } from '#platform/proxied-server.ts'
import type { NodeAuthn } from '#plane/authn/node-certificate.ts'
import type { ChannelServer } from '#plane/channel/channel-server.ts'
import type { ServerIdentity } from '#plane/authority/authority.ts'
import { evidenceIn } from '#wire/core/agent-evidence.ts'
import { refusalText } from '#wire/core/error-body.ts'
import { authorise } from '#plane/http/authorise.ts'
import { headerMistake } from '#plane/http/header-rules.ts'
import { httpApp, type MachineCalls } from '#plane/http/http-app.ts'
import { faultRefusal, type Refused } from '#plane/http/http-reply.ts'
import { sourceAddress } from '#platform/caller-address.ts'
import { judgeStanding } from '#plane/http/standing-gate.ts'
import { matchUpgrade } from '#plane/http/upgrade-route.ts'
import type { Timers } from '#platform/timers.ts'

export type NodeListenerParts = {
  readonly calls: MachineCalls
  readonly authn: NodeAuthn
  readonly channels: ChannelServer
  readonly identity: ServerIdentity
  readonly roots: readonly string[]
  readonly limits: ConnectionLimits
  readonly balancers: Balancers | null
}

export type NodeListener = {
  listen(at: SharedAddress): Promise<number>
  replaceIdentity(identity: ServerIdentity, roots: readonly string[]): void
  connections(): Promise<number>
  stop(withinMs: number): Promise<void>
}

const tlsOptions = ({ keyPem, chainPem }: ServerIdentity, roots: readonly string[]) => ({
  keyPem,
  chainPem,
  clientRoots: roots,
  rejectUnauthorized: false,
})

export const openNodeListener = async (timers: Timers, parts: NodeListenerParts): Promise<NodeListener> => {
  const { calls, authn, limits } = parts
  const authenticate = (request: HttpRequest, source: string): Promise<Principal | Refusal> =>
    authn(request.socket as TLSSocket, source, () => evidenceIn(request.headers))
  const app = httpApp({ ...calls, callers: 'machines', authenticate })
  await app.ready()

  const server = createTlsServer(tlsOptions(parts.identity, parts.roots), app.routing)
  boundServer(server, {
    ...limits,
    unreadable: (tooLarge) => refusalText(refuse(tooLarge ? 'TOO_LARGE' : 'REQUEST_INVALID')),
  })
  const headers = readProxyHeaders(server, parts.balancers, timers)
  // A port scanner or a client of another trust is daily business, not an error of ours.
  server.on('tlsClientError', (error: Error) => calls.log.debug({ err: error }, 'TLS handshake failed'))
  server.on(
    'upgrade',
    (request: HttpRequest, socket: Duplex, head: Buffer) => void upgrade(parts, request, socket, head),
  )

  return {
    listen: ({ host, port, shared }) => listenTcp(server, host, port, shared),
    replaceIdentity: (identity, roots) => replaceServerIdentity(server, tlsOptions(identity, roots)),
    connections: () => countConnections(server),
    async stop(withinMs) {
      headers.close()
      await stopServer(server, timers, withinMs)
      await app.close()
    },
  }
}

const upgrade = async (
  { calls, authn, channels }: NodeListenerParts,
  request: HttpRequest,
  socket: Duplex,
  head: Buffer,
): Promise<void> => {
  const correlation = calls.correlation()
  const source = sourceAddress(request.socket)
  // Without a listener an error on the bare socket would end the process.
  socket.on('error', () => socket.destroy())
  // Frames of a channel would be mixed up with answers that are still to come.
  if (!mayBecomeChannel(request.socket)) return void socket.destroy()
  const notNow = (): Refusal | null => judgeStanding(calls.standing(), 'machines', { method: 'GET' })
  const refused = (decided: Refusal, principal: Principal | null): void => {
    const refusal = notNow() ?? decided
    const path = matchUpgrade(calls.routes, request.url ?? '')?.route.path ?? null
    calls.onRefusal({ refusal, principal, source, method: 'GET', path, correlation } satisfies Refused)
    refusedUpgrade(request.socket)
    // Destroyed once it is said: a caller that does not hang up would keep its half of the connection for good.
    socket.end(refusalText(refusal), () => socket.destroy())
  }
  try {
    const notServed = notNow()
    if (notServed !== null) return refused(notServed, null)
    const mistake = headerMistake(request)
    if (mistake !== null) return refused(mistake, null)
    const match = matchUpgrade(calls.routes, request.url ?? '')
    if (match === null) return refused(refuse('NOT_FOUND'), null)
    const principal = await authn(request.socket as TLSSocket, source, () => evidenceIn(request.headers))
    if (principal.kind === 'refused') return refused(principal, null)
    if (principal.kind !== 'anonymous') provenConnection(request.socket, actorOf(principal))
    const no = authorise(match.route, principal, match.params)
    if (no !== null) return refused(no, principal)
    if (principal.kind !== 'node') return refused(refuse('CLIENT_CERT_REQUIRED'), principal)
    const outcome = await channels.open(principal, request, socket, head, correlation)
    if (outcome !== 'opened') return refused(outcome, principal)
    becameChannel(request.socket)
  } catch (error) {
    calls.log.error({ err: error, correlation }, 'a channel could not be opened')
    refused(faultRefusal(calls.trouble()), null)
  }
}

const countConnections = (server: HttpsServer): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
