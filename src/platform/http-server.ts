// HTTP servers without TLS, and what all servers share: bounds, where they listen, how they stop.

import * as fs from 'node:fs'
import * as http from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import * as net from 'node:net'
import * as path from 'node:path'
import { errno, makeFolder } from './files.ts'
import type { Timers } from './timers.ts'

export type HttpRequest = http.IncomingMessage
export type HttpResponse = http.ServerResponse
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void
export type HttpServer = http.Server | HttpsServer

/** `shared`: other processes of this user listen there too, and the kernel spreads connections over them. */
export type SharedAddress = { readonly host: string; readonly port: number; readonly shared: boolean }

const second = 1000

export const createHttpServer = (handler: HttpHandler): http.Server =>
  http.createServer(
    {
      headersTimeout: 10 * second,
      requestTimeout: 30 * second,
      keepAliveTimeout: 75 * second,
      connectionsCheckingInterval: 5 * second,
      maxHeaderSize: 16 * 1024,
    },
    handler,
  )

export type ServerBounds = {
  readonly connections: number
  /** What is sent to a peer whose bytes are no HTTP request, before its socket is closed. */
  readonly unreadable: (tooLarge: boolean) => string
}

export const boundServer = (server: HttpServer, bounds: ServerBounds): void => {
  server.maxConnections = bounds.connections
  // A connection that is kept for later costs its holder next to nothing: it must not keep out whoever comes now.
  server.on('drop', () => server.closeIdleConnections())
  server.on('clientError', (error: Error, socket: net.Socket) => {
    const gone = errno(error) === 'ECONNRESET' || !socket.writable
    if (!gone) socket.write(bounds.unreadable(errno(error) === 'HPE_HEADER_OVERFLOW'))
    socket.destroySoon()
  })
  // Asked for once, the address of a caller is kept; of one that has hung up it cannot be had any more, and whatever it
  // sent before would be nobody's.
  server.on('secureConnection', (socket: net.Socket) => {
    if (socket.remoteAddress === undefined) socket.destroy()
  })
  // After a handshake that failed or took too long nothing can be said: the words would wait for its end, and with them
  // the socket, for good.
  server.on('tlsClientError', (_error: Error, socket: net.Socket) => socket.destroy())
}

/** The port it listens on, which is the one asked for unless that was 0. */
export const listenTcp = async (server: HttpServer, host: string, port: number, shared = false): Promise<number> => {
  await listening(server, () => server.listen({ host, port, reusePort: shared }))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error(`no port after listening on ${host}`)
  return address.port
}

// sun_path has 108 bytes on Linux and 104 elsewhere, one of them the terminator.
const longestSocketPath = 103

/** A socket only its owner can open, in a folder only its owner can enter. A dead one of that name is replaced. */
export const listenUnix = async (server: HttpServer, file: string): Promise<void> => {
  if (Buffer.byteLength(file) > longestSocketPath) {
    throw new Error(`${file} is too long for the name of a socket, which has at most ${longestSocketPath} bytes`)
  }
  const folder = path.dirname(path.resolve(file))
  makeFolder(folder, 0o700)
  if ((fs.statSync(folder).mode & 0o077) !== 0) {
    throw new Error(`${folder} is open to others; the socket of the operator plane needs a folder of mode 0700`)
  }
  await removeDeadSocket(file)
  await listening(server, () => server.listen({ path: file }))
  fs.chmodSync(file, 0o600)
}

const removeDeadSocket = async (file: string): Promise<void> => {
  const found = fs.lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error(`${file} is there and is not a socket`)
  if (await answers(file)) throw new Error(`another process answers on ${file}`)
  fs.rmSync(file)
}

/** False also where there is no such socket, or it may not be opened. */
export const socketAnswers = async (file: string): Promise<boolean> => {
  if (
    Buffer.byteLength(file) > longestSocketPath ||
    !(fs.lstatSync(file, { throwIfNoEntry: false })?.isSocket() ?? false)
  )
    return false
  return answers(file).catch(() => false)
}

const answers = (file: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ path: file })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error) => (errno(error) === 'ECONNREFUSED' ? resolve(false) : reject(error)))
  })

const listening = (server: HttpServer, listen: () => void): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.once('listening', () => {
      server.off('error', reject)
      resolve()
    })
    listen()
  })

/** No new connections; calls under way get until the deadline. */
export const stopServer = (server: HttpServer, timers: Timers, withinMs: number): Promise<void> =>
  new Promise((resolve) => {
    const cancelDeadline = timers.after(withinMs, () => server.closeAllConnections())
    // A connection whose call ends now would be kept open for another that never comes.
    const cancelSweep = timers.every(50, () => server.closeIdleConnections())
    server.close(() => {
      cancelDeadline()
      cancelSweep()
      resolve()
    })
    server.closeIdleConnections()
  })

export type HeldPort = { readonly port: number; release(): Promise<void> }

/** A port of this host that nobody listens on: `port` itself, or any where that is 0. Rejects where somebody does. */
export const holdPort = async (host: string, port: number): Promise<HeldPort> => {
  const server = createHttpServer(() => {})
  const taken = await listenTcp(server, host, port)
  return { port: taken, release: () => new Promise((resolve) => server.close(() => resolve())) }
}
