// What one peer may cost an HTTP server, the same on every listener: connections, unfinished handshakes, requests that
// wait, bytes that are not read. How long headers, bodies and handshakes may take is an option of the servers themselves.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  connectionOf,
  openConnections,
  type Connection,
  type ConnectionLimits,
  type Connections,
} from './connections.ts'
import { endsOf } from './caller-address.ts'
import { dropRequest } from './dropped-requests.ts'
import { errno } from './files.ts'
import type { HttpHandler, HttpServer } from './http-server.ts'
import type { TlsThreadsListener } from './tls-threads.ts'

export type ServerBounds = ConnectionLimits & {
  /** What is sent to a peer whose bytes are no HTTP request, before its socket is closed. */
  readonly unreadable: (tooLarge: boolean) => string
}

/** Right after the server was made, before PROXY headers are read on it and before it listens. */
export const boundServer = (server: HttpServer, bounds: ServerBounds): void => {
  server.maxConnections = bounds.connections
  // An idle connection costs its holder next to nothing: it must not keep a new caller out.
  server.on('drop', () => server.closeIdleConnections())
  // The address of a caller is read once and kept: after a hang-up it cannot be read, and its requests would have no source.
  server.on('secureConnection', (socket: Socket) => {
    if (socket.remoteAddress === undefined) socket.destroy()
  })
  // After a handshake that failed or took too long nothing can be said: the words would wait for its end, and with them
  // the socket, for good.
  server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  admitConnections(server, boundRequests(server, bounds))
}

/** The same for a server whose connections other threads accept: it is handed them when their handshake is done. */
export const boundThreadedServer = (server: HttpServer, bounds: ServerBounds): ThreadedBounds => {
  const connections = boundRequests(server, bounds)
  return {
    admits: (socket) => connections.open(socket as unknown as Socket, true) !== null,
    secured(socket) {
      const connection = connectionOf(socket)
      if (connection === null) return void socket.destroy()
      connections.secured(connection, connection.socket)
      if (!socket.destroyed) server.emit('connection', socket)
    },
    // Not by the server itself: it takes a connection for idle whose answer is still on its way to the thread.
    closeIdle: () => connections.closeIdle(),
  }
}

export type ThreadedBounds = Pick<TlsThreadsListener, 'admits' | 'secured'> & { closeIdle(): void }

const boundRequests = (server: HttpServer, bounds: ServerBounds): Connections => {
  server.on('clientError', (error: Error, socket: Socket) => {
    const gone = errno(error) === 'ECONNRESET' || !socket.writable
    if (!gone) socket.write(bounds.unreadable(errno(error) === 'HPE_HEADER_OVERFLOW'))
    socket.destroySoon()
  })
  const connections = openConnections(bounds)
  server.once('close', () => connections.close())
  answerInTurn(server, connections)
  return connections
}

const admitConnections = (server: HttpServer, connections: Connections): void => {
  const isTls = 'setSecureContext' in server
  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  /** By the two ends of the TCP connection: TLS wraps its socket in another, which has the same ends. */
  const handshaking = new Map<string, Connection>()
  server.on('connection', (socket: Socket) => {
    const connection = connections.open(socket, isTls)
    if (connection === null) return
    if (isTls) {
      const ends = endsOf(socket)
      handshaking.set(ends, connection)
      socket.once('close', () => {
        if (handshaking.get(ends) === connection) handshaking.delete(ends)
      })
    }
    for (const listener of listeners) listener.call(server, socket)
  })
  if (!isTls) return
  server.prependListener('secureConnection', (socket: Socket) => {
    const connection = handshaking.get(endsOf(socket))
    if (connection === undefined) return void socket.destroy()
    handshaking.delete(endsOf(socket))
    connections.secured(connection, socket)
  })
}

/** Requests that may wait for the answer before theirs. Few clients pipeline at all. */
const mostWaiting = 16

/** Node makes an error for each request of a closed connection. For requests without a handler, the stack traces cost most. */
const abortWithoutTraces = (socket: Socket): void => {
  const limit = Error.stackTraceLimit
  socket.prependOnceListener('close', () => void (Error.stackTraceLimit = 0))
  socket.once('close', () => void (Error.stackTraceLimit = limit))
}

type Waiting = readonly [IncomingMessage, ServerResponse]

/**
 * Node hands over every request of what it has read at once, and pausing the socket does not stop it. So requests of one
 * connection wait here: the next is handled when the answer before it has been handed to the kernel, so a connection
 * holds the bytes of one answer at most.
 */
const answerInTurn = (server: HttpServer, connections: Connections): void => {
  const handlers = server.listeners('request') as HttpHandler[]
  server.removeAllListeners('request')
  const waiting = new WeakMap<Connection, Waiting[]>()

  const start = (connection: Connection, [request, response]: Waiting): void => {
    connections.began(connection)
    response.once('close', () => {
      connections.answered(connection, request.complete)
      const next = waiting.get(connection)?.shift()
      // A socket that is closing sends no further answer: a request must not be carried out without one.
      if (next !== undefined && !connection.closed && connection.socket.writable) start(connection, next)
    })
    for (const handler of handlers) handler.call(server, request, response)
  }
  const receive = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOf(request.socket)
    // Node goes on to hand over all it has read, also when the socket is gone.
    if (connection === null || connection.closed) return dropRequest(request, response)
    if (!connection.answering) return start(connection, [request, response])
    const queue = waiting.get(connection) ?? []
    if (queue.length >= mostWaiting) {
      abortWithoutTraces(request.socket)
      dropRequest(request, response)
      for (const each of queue.splice(0)) dropRequest(...each)
      return connections.cut(connection, 'pipelined')
    }
    queue.push([request, response])
    waiting.set(connection, queue)
  }
  server.on('request', receive)
  // Without these two Node answers before the handler and out of order.
  server.on('checkContinue', receive)
  server.on('checkExpectation', receive)
}
