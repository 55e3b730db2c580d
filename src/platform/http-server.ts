// Servers as Muster wants them: bounded in time, header size and connections, and with their identity replaceable.

import * as fs from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import * as path from 'node:path'
import { constants } from 'node:crypto'
import { errno, makeFolder } from './files.ts'
import type { Timers } from './timers.ts'

export type HttpRequest = http.IncomingMessage
export type HttpResponse = http.ServerResponse
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void
export type HttpServer = http.Server | https.Server

export type HttpLimits = {
  /** From the first byte to the end of the headers. */
  readonly headersMs: number
  /** From the first byte to the end of the body. */
  readonly requestMs: number
  readonly idleMs: number
  readonly headerBytes: number
  readonly connections: number
}

/** What is sent to a peer whose bytes are no HTTP request, before its socket is closed. */
export type Unreadable = (tooLarge: boolean) => string

const bounded = <S extends HttpServer>(server: S, limits: HttpLimits, unreadable: Unreadable): S => {
  server.maxConnections = limits.connections
  server.on('clientError', (error: Error, socket: net.Socket) => {
    if (socket.writable && errno(error) !== 'ECONNRESET')
      socket.write(unreadable(errno(error) === 'HPE_HEADER_OVERFLOW'))
    socket.destroySoon()
  })
  return server
}

const serverOptions = (limits: HttpLimits) => ({
  headersTimeout: limits.headersMs,
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.idleMs,
  maxHeaderSize: limits.headerBytes,
  connectionsCheckingInterval: 1000,
})

export const httpServer = (handler: HttpHandler, limits: HttpLimits, unreadable: Unreadable): http.Server =>
  bounded(http.createServer(serverOptions(limits), handler), limits, unreadable)

export type TlsIdentity = { readonly keyPem: string; readonly chainPem: string }

const tlsOptions = (identity: TlsIdentity) => ({
  key: identity.keyPem,
  cert: identity.chainPem,
  minVersion: 'TLSv1.3' as const,
  secureOptions: constants.SSL_OP_NO_TICKET,
})

/** TLS 1.3 without tickets; no client certificate is asked for. */
export const tlsHttpServer = (
  handler: HttpHandler,
  limits: HttpLimits,
  unreadable: Unreadable,
  identity: TlsIdentity,
): https.Server => {
  const options = { ...serverOptions(limits), ...tlsOptions(identity), handshakeTimeout: limits.headersMs }
  return bounded(https.createServer(options, handler), limits, unreadable)
}

/** `setSecureContext` replaces the whole option set, so all of it is passed again (ruling 14). */
export const replaceIdentity = (server: https.Server, identity: TlsIdentity): void =>
  server.setSecureContext(tlsOptions(identity))

/** The port it listens on, which is the one asked for unless that was 0. */
export const listenTcp = async (server: HttpServer, host: string, port: number): Promise<number> => {
  await listening(server, () => server.listen({ host, port }))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error(`no port after listening on ${host}`)
  return address.port
}

// sun_path has 108 bytes on Linux and 104 elsewhere, one of them the terminator.
const longestSocketPath = 103

/** A socket only its owner can open, in a folder only its owner can enter. A dead one of that name is replaced. */
export const listenUnix = async (server: HttpServer, file: string): Promise<void> => {
  if (Buffer.byteLength(file) > longestSocketPath)
    throw new Error(`${file} is too long for a socket: at most ${longestSocketPath} bytes`)
  const folder = path.dirname(path.resolve(file))
  makeFolder(folder, 0o700)
  if ((fs.statSync(folder).mode & 0o077) !== 0)
    throw new Error(`${folder} is open to others: the socket needs a folder of mode 0700`)
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

/** No new connections; those in use get until the deadline. Safe to call on a server that never listened. */
export const stopServer = (server: HttpServer, timers: Timers, withinMs: number): Promise<void> =>
  new Promise((resolve) => {
    const cancel = timers.after(withinMs, () => server.closeAllConnections())
    server.close(() => {
      cancel()
      resolve()
    })
    server.closeIdleConnections()
  })
