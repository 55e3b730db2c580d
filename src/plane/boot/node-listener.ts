// The node listener: TLS 1.3, a client certificate asked for and judged in authn/ (which is why Node's own verdict is not
// asked, ruling 9), HTTP/1.1, and channels. HTTP calls and upgrades pass the same authentication and the same route table.

import { actorOf, type Principal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import {
  becameChannel,
  mayBecomeChannel,
  provenConnection,
  refusedUpgrade,
  type ConnectionLimits,
} from '#platform/connections.ts'
import type { HttpRequest, SharedAddress } from '#platform/http-server.ts'
import { openTlsListener } from '#platform/tls-listener.ts'
import type { Duplex, SecuredSocket } from '#platform/tls-server.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import type { TokenAuthn } from '#plane/authn/enrollment-token.ts'
import type { NodeAuthn } from '#plane/authn/node-certificate.ts'
import type { ChannelServer } from '#plane/channel/channel-server.ts'
import type { ServerIdentity } from '#plane/authority/authority.ts'
import { evidenceIn } from '#wire/core/agent-evidence.ts'
import { refusalText } from '#wire/core/refusal-response.ts'
import { authorise } from '#plane/http/authorise.ts'
import { headerMistake } from '#plane/http/header-rules.ts'
import { httpApp, type MachineCalls } from '#plane/http/http-app.ts'
import { faultRefusal, type Refused } from '#plane/http/http-reply.ts'
import { sourceAddress } from '#platform/caller-address.ts'
import type { Route } from '#plane/http/route.ts'
import { judgeStanding } from '#plane/http/standing-gate.ts'
import { matchUpgrade } from '#plane/http/upgrade-route.ts'
import type { Timers } from '#platform/timers.ts'

export type NodeListenerParts = {
  readonly calls: MachineCalls
  readonly authn: NodeAuthn
  readonly tokenAuthn: TokenAuthn
  readonly channels: ChannelServer
  readonly identity: ServerIdentity
  readonly roots: readonly string[]
  readonly limits: ConnectionLimits
  /** Threads that speak TLS; 0: the main one does. */
  readonly threads: number
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
  const { calls, authn, tokenAuthn, limits } = parts
  const authenticate = async (
    request: HttpRequest,
    source: string,
    { access }: Pick<Route, 'access'>,
  ): Promise<Principal | Refusal> => {
    const principal = await authn(request.socket as SecuredSocket, source, () => evidenceIn(request.headers))
    // A certificate that proves nothing here, such as a program's, is refused whatever else its holder brings.
    const isNobody = principal.kind === 'anonymous' && access === 'machine'
    return isNobody ? tokenAuthn(request.headers.authorization, source) : principal
  }
  const app = httpApp({ ...calls, callers: 'machines', authenticate })
  await app.ready()

  const listener = openTlsListener(timers, {
    options: tlsOptions(parts.identity, parts.roots),
    threads: parts.threads,
    handler: app.routing,
    onUpgrade: (request, socket, head) => void upgrade(parts, request, socket, head),
    bounds: {
      ...limits,
      unreadable: (tooLarge) => refusalText(refuse(tooLarge ? 'TOO_LARGE' : 'REQUEST_INVALID')),
    },
    balancers: parts.balancers,
    onHandshakeFailed: (why) => calls.log.debug({ why }, 'TLS handshake failed'),
  })

  return {
    listen: (at) => listener.listen(at),
    replaceIdentity: (identity, roots) => listener.replaceIdentity(tlsOptions(identity, roots)),
    connections: () => listener.connections(),
    async stop(withinMs) {
      await listener.stop(withinMs)
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
  destroyOnError(socket)
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
    const principal = await authn(request.socket as SecuredSocket, source, () => evidenceIn(request.headers))
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

/**
 * Without a listener an error on the bare socket would end the process. Made here and not in `upgrade`: a channel would keep
 * what that function knows, with the request and its headers, for as long as it is open.
 */
const destroyOnError = (socket: Duplex): void => {
  socket.on('error', () => socket.destroy())
}
