// A listener for machines: TLS 1.3, spoken by this thread or by threads of its own, and HTTP/1.1 above it with the bounds of
// bounded-server.ts. Whoever uses it cannot tell which thread has shaken hands.

import { boundServer, boundThreadedServer, type ServerBounds } from './bounded-server.ts'
import { listenTcp, stopServer, type HttpHandler, type HttpRequest, type SharedAddress } from './http-server.ts'
import { readProxyHeaders, type Balancers } from './proxied-server.ts'
import type { Timers } from './timers.ts'
import {
  createThreadedServer,
  createTlsServer,
  replaceServerIdentity,
  type Duplex,
  type TlsServerOptions,
} from './tls-server.ts'
import { openTlsThreads } from './tls-threads.ts'

export type TlsListenerParts = {
  readonly options: TlsServerOptions
  /** Threads that speak TLS; 0: this one does. */
  readonly threads: number
  readonly handler: HttpHandler
  /** Null: no connection becomes a channel. */
  readonly onUpgrade: ((request: HttpRequest, socket: Duplex, head: Buffer) => void) | null
  readonly bounds: ServerBounds
  readonly balancers: Balancers | null
  /** A port scanner or a client of another trust is daily business, not an error of ours. */
  readonly onHandshakeFailed: (why: string) => void
}

export type TlsListener = {
  listen(at: SharedAddress): Promise<number>
  replaceIdentity(options: TlsServerOptions): void
  connections(): Promise<number>
  /** No new connections; calls under way get until the deadline. */
  stop(withinMs: number): Promise<void>
}

export const openTlsListener = (timers: Timers, parts: TlsListenerParts): TlsListener =>
  parts.threads === 0 ? onThisThread(timers, parts) : onThreads(timers, parts)

const onThisThread = (timers: Timers, parts: TlsListenerParts): TlsListener => {
  const server = createTlsServer(parts.options, parts.handler)
  boundServer(server, parts.bounds)
  const headers = readProxyHeaders(server, parts.balancers, timers)
  server.on('tlsClientError', (error: Error) => parts.onHandshakeFailed(error.message))
  if (parts.onUpgrade !== null) server.on('upgrade', parts.onUpgrade)
  return {
    listen: ({ host, port, shared }) => listenTcp(server, host, port, shared),
    replaceIdentity: (options) => replaceServerIdentity(server, options),
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    stop(withinMs) {
      headers.close()
      return stopServer(server, timers, withinMs)
    },
  }
}

const idleSweepMs = 50

const onThreads = (timers: Timers, parts: TlsListenerParts): TlsListener => {
  const { threads: count, options, bounds, balancers } = parts
  const server = createThreadedServer(parts.handler)
  const { admits, secured, closeIdle } = boundThreadedServer(server, bounds)
  const on = { admits, secured, full: closeIdle, failed: parts.onHandshakeFailed }
  if (parts.onUpgrade !== null) server.on('upgrade', parts.onUpgrade)
  const threads = openTlsThreads({ threads: count, options, connections: bounds.connections, balancers, on })
  return {
    listen: (at) => threads.listen(at),
    replaceIdentity: (identity) => threads.replaceIdentity(identity),
    connections: async () => threads.connections(),
    async stop(withinMs) {
      threads.stopListening()
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          cancelDeadline()
          cancelSweep()
          resolve()
        }
        const cancelDeadline = timers.after(withinMs, finish)
        // A connection whose call ends now would be kept open for another that never comes.
        const sweep = (): void => {
          closeIdle()
          if (threads.connections() === 0) finish()
        }
        const cancelSweep = timers.every(idleSweepMs, sweep)
        sweep()
      })
      // Connections whose call is not over are cut with the rest.
      server.close()
      await threads.close()
    },
  }
}
