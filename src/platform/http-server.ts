// HTTP servers without TLS, and what all servers share: where they listen, how they stop. What one peer may cost them is
// in bounded-server.ts.

import * as fs from 'node:fs'
import * as http from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import * as net from 'node:net'
import * as path from 'node:path'
import { droppable } from './dropped-requests.ts'
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
      ...droppable,
      headersTimeout: 10 * second,
      requestTimeout: 30 * second,
      keepAliveTimeout: 75 * second,
      connectionsCheckingInterval: 5 * second,
      maxHeaderSize: 16 * 1024,
    },
    handler,
  )

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
    throw new Error(`${folder} is open to others; the socket of the operator listener needs a folder of mode 0700`)
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

/** A free port of this host: `port` itself, or any if it is 0. Rejects if the port is taken. */
export const holdPort = async (host: string, port: number): Promise<HeldPort> => {
  const server = createHttpServer(() => {})
  const taken = await listenTcp(server, host, port)
  return { port: taken, release: () => new Promise((resolve) => server.close(() => resolve())) }
}
