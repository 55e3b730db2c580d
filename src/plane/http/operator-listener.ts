// The operator listener's doors: a Unix socket, loopback HTTP, TLS. Behind each is the same app, and none of them grants
// anything: every call carries an operator key.

import type { FastifyInstance } from 'fastify'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Authority, ServerIdentity } from '#plane/authority/authority.ts'
import { boundServer } from '#platform/bounded-server.ts'
import type { ConnectionLimits } from '#platform/connections.ts'
import {
  createHttpServer,
  listenTcp,
  listenUnix,
  stopServer,
  type HttpHandler,
  type HttpServer,
  type SharedAddress,
} from '#platform/http-server.ts'
import { readProxyHeaders, type Balancers, type HeaderReading } from '#platform/proxied-server.ts'
import type { Timers } from '#platform/timers.ts'
import { createTlsServer, replaceServerIdentity, type HttpsServer } from '#platform/tls-server.ts'
import { refusalResponse, refusalText } from '#wire/core/refusal-response.ts'
import { loopbackAddress, loopbackRule, sameOriginRule, type HostRule } from './host-rule.ts'

export type OperatorDoors = {
  /** Where the Unix socket is to be; null: none. */
  readonly socket: string | null
  readonly http: SharedAddress | null
  readonly tls: SharedAddress | null
}

export type OperatorListenerParts = {
  readonly app: FastifyInstance
  readonly authority: Pick<Authority, 'serverIdentity' | 'onServerIdentity'>
  readonly timers: Timers
  /** Of each listener. */
  readonly limits: ConnectionLimits
  /** Asked about callers by TLS only. */
  readonly balancers: Balancers | null
  /** Called for connections and requests that were refused before a handler ran. */
  readonly onTurnedAway: (refusal: Refusal) => void
  /** Ends every call that waits for a change. */
  readonly beforeStop: () => void
}

export type OperatorListener = {
  readonly socket: string | null
  /** With the ports that were really taken. */
  readonly httpUrl: string | null
  readonly tlsUrl: string | null
  stop(withinMs: number): Promise<void>
}

export const openOperatorListener = async (
  parts: OperatorListenerParts,
  doors: OperatorDoors,
): Promise<OperatorListener> => {
  await parts.app.ready()
  const open: HttpServer[] = []
  const headers: HeaderReading[] = []
  const stop = async (withinMs: number): Promise<void> => {
    parts.beforeStop()
    for (const reading of headers) reading.close()
    await Promise.all(open.map((server) => stopServer(server, parts.timers, withinMs)))
    await parts.app.close()
  }
  const keep = <S extends HttpServer>(server: S): S => {
    boundServer(server, {
      ...parts.limits,
      unreadable: (tooLarge) => refusalText(refuse(tooLarge ? 'TOO_LARGE' : 'REQUEST_INVALID')),
    })
    open.push(server)
    return server
  }
  const keepTls = (server: HttpsServer): HttpsServer => {
    keep(server)
    headers.push(readProxyHeaders(server, parts.balancers, parts.timers))
    return server
  }
  try {
    if (doors.socket !== null) await listenUnix(keep(createHttpServer(parts.app.routing)), doors.socket)
    const httpUrl = doors.http === null ? null : await openLoopback(parts, keep, doors.http)
    const tlsUrl = doors.tls === null ? null : await openTls(parts, keepTls, doors.tls)
    return { socket: doors.socket, httpUrl, tlsUrl, stop }
  } catch (error) {
    // A listener that cannot open closes the others: a plane with half its listeners would look healthy.
    await stop(0)
    throw error
  }
}

type Keep = <S extends HttpServer>(server: S) => S

const openLoopback = async (
  parts: OperatorListenerParts,
  keep: Keep,
  { host, port, shared }: SharedAddress,
): Promise<string> => {
  const address = loopbackAddress(host)
  if (address === null) {
    throw new Error(
      `the operator plane listens without TLS on loopback addresses only, and ${host} is not one: turn TLS on for it`,
    )
  }
  let rule: HostRule = () => refuse('HOST_NOT_ALLOWED')
  const server = keep(createHttpServer(screened(parts, (caller) => rule(caller))))
  const taken = await listenTcp(server, address, port, shared)
  rule = loopbackRule(address, taken)
  return `http://${inUrl(address)}:${taken}`
}

const openTls = async (
  parts: OperatorListenerParts,
  keep: (server: HttpsServer) => HttpsServer,
  { host, port, shared }: SharedAddress,
): Promise<string> => {
  const { authority } = parts
  const options = ({ keyPem, chainPem }: ServerIdentity) => ({
    keyPem,
    chainPem,
    clientRoots: null,
    rejectUnauthorized: true,
  })
  const server = keep(createTlsServer(options(authority.serverIdentity()), screened(parts, sameOriginRule)))
  authority.onServerIdentity((identity) => replaceServerIdentity(server, options(identity)))
  return `https://${inUrl(host)}:${await listenTcp(server, host, port, shared)}`
}

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** Before anything else of the call is looked at. */
const screened =
  ({ app, onTurnedAway }: OperatorListenerParts, rule: HostRule): HttpHandler =>
  (request, response) => {
    const no = rule({ host: request.headers.host, origin: request.headers.origin })
    if (no === null) return app.routing(request, response)
    onTurnedAway(no)
    const { status, headers, body } = refusalResponse(no)
    response.writeHead(status, { ...headers, connection: 'close' }).end(body)
  }
