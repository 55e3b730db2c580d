// A thread that accepts connections and speaks TLS, and nothing else: what it decrypts goes to the main thread, which decides
// everything. It begins no handshake before the main thread has admitted the connection.

import * as tls from 'node:tls'
import type { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { endsOf } from './caller-address.ts'
import { errno } from './files.ts'
import { readProxyHeader } from './proxied-server.ts'
import { openThreadOutbox } from './thread-outbox.ts'
import { systemTimers } from './timers.ts'
import { handshakeWithinMs, peerCertificate, secureOptions } from './tls-server.ts'
import {
  costOf,
  unreadLimits,
  type ConnectionOrder,
  type FromTlsThread,
  type TlsThreadStart,
  type ToTlsThread,
} from './tls-thread-messages.ts'
import { openUnreadBudget } from './unread-budget.ts'

type Held = {
  readonly raw: Socket
  readonly ends: string
  /** Null before its handshake is done. */
  secured: tls.TLSSocket | null
  /** What the main thread has not read, by `costOf`. */
  outstanding: number
  /** The main thread has destroyed its end: nothing of it is unread any more. */
  isLetGo: boolean
}

const port = parentPort
if (port === null) throw new Error('this file is started as a thread')
const { options, connections, count, firstId, idStep } = workerData as TlsThreadStart

const say = openThreadOutbox<FromTlsThread>((messages) => port.postMessage(messages))
const held = new Map<number, Held>()
const idByEnds = new Map<string, number>()
const unread = openUnreadBudget(unreadLimits(idStep))
/** Closed, and not let go of: what they sent is on its way. */
const leaving = new Map<number, Held>()
let nextId = firstId

const server = tls.createServer({ ...secureOptions(options), handshakeTimeout: handshakeWithinMs, noDelay: true })
const beginTls = server.listeners('connection')
server.removeAllListeners('connection')

server.on('connection', (raw: Socket) => {
  raw.on('error', () => raw.destroy())
  // Already closed: its address can no longer be read.
  if (raw.remoteAddress === undefined || raw.remotePort === undefined) return void raw.destroy()
  if (Atomics.add(count, 0, 1) >= connections) {
    Atomics.sub(count, 0, 1)
    sayFull()
    return void raw.destroy()
  }
  const id = nextId
  nextId += idStep
  const connection: Held = { raw, ends: endsOf(raw), secured: null, outstanding: 0, isLetGo: false }
  held.set(id, connection)
  idByEnds.set(connection.ends, id)
  raw.once('close', () => {
    if (connection.secured === null) closed(id, connection, raw)
  })
  say(['opened', id, raw.remoteAddress, raw.remotePort])
})

let isFullSaid = false
const sayFull = (): void => {
  if (isFullSaid) return
  isFullSaid = true
  say(['full'])
  // Once a turn: a flood of connections must not become a flood of messages.
  systemTimers.soon(() => (isFullSaid = false))
}

server.on('secureConnection', (socket: tls.TLSSocket) => {
  const id = idByEnds.get(endsOf(socket))
  const connection = id === undefined ? undefined : held.get(id)
  if (id === undefined || connection === undefined) return void socket.destroy()
  connection.secured = socket
  // The main thread decides when its side ends: what it has not answered yet would be lost.
  socket.allowHalfOpen = true
  socket.on('error', () => socket.destroy())
  socket.on('end', () => say(['ended', id]))
  socket.on('data', (bytes: Buffer) => {
    // The sender waits: its bytes stay in the buffers of the kernel.
    if (!mayBeRead(connection, connection.outstanding + costOf(bytes))) socket.pause()
    say(['received', id, bytes.toString('latin1')])
  })
  socket.once('close', () => closed(id, connection, socket))
  const der = peerCertificate(socket)
  say(['secured', id, der === null ? null : der.toString('latin1')])
})

// After a handshake that failed or took too long nothing can be said: the words would wait for its end, and with them the
// socket, for good.
server.on('tlsClientError', (error: Error, socket: tls.TLSSocket) => {
  const id = idByEnds.get(endsOf(socket))
  if (id !== undefined) say(['failed', id, error.message])
  socket.destroy()
})

const mayBeRead = (connection: Held, outstanding: number): boolean => {
  const before = connection.outstanding
  connection.outstanding = outstanding
  return unread.changed(before, outstanding)
}

/** After an error the end of the connection is all there is to say. */
const written = (id: number, error: Error | null | undefined): void => {
  if (error === null || error === undefined) say(['written', id])
}

const closed = (id: number, connection: Held, socket: Socket): void => {
  const { ends } = connection
  held.delete(id)
  if (connection.isLetGo) mayBeRead(connection, 0)
  else leaving.set(id, connection)
  if (idByEnds.get(ends) === id) idByEnds.delete(ends)
  say(['closed', id, socket.bytesRead])
}

const listen = (host: string, at: number, shared: boolean): void => {
  const onError = (error: Error): void => say(['not listening', errno(error), error.message])
  server.once('error', onError)
  server.listen({ host, port: at, reusePort: shared }, () => {
    server.off('error', onError)
    const address = server.address()
    if (address !== null && typeof address !== 'string') say(['listening', address.port])
  })
}

const readHeader = (id: number, { raw }: Held): void =>
  readProxyHeader(raw, systemTimers, (outcome) =>
    say(outcome.kind === 'read' ? ['header', id, outcome.caller] : ['no header', id, outcome.trouble, outcome.why]),
  )

const obey = (message: ToTlsThread): void => {
  switch (message[0]) {
    case 'listen':
      return listen(message[1], message[2], message[3])
    case 'identity':
      return server.setSecureContext(secureOptions(message[1]))
    case 'stop listening':
      return void server.close()
    case 'read header':
    case 'begin':
    case 'write':
    case 'finish':
    case 'destroy':
    case 'read':
      return obeyFor(message)
  }
}

const obeyFor = (message: ConnectionOrder): void => {
  const id = message[1]
  const connection = held.get(id)
  // Closed meanwhile, which the main thread is about to read.
  if (connection === undefined) return obeyForLeaving(message)
  const { raw, secured } = connection
  switch (message[0]) {
    case 'read header':
      return readHeader(id, connection)
    case 'begin':
      for (const listener of beginTls) listener.call(server, raw)
      return
    case 'write':
      return void secured?.write(message[2], message[3], (error) => written(id, error))
    case 'finish':
      return void secured?.end(() => written(id, null))
    case 'destroy':
      connection.isLetGo = true
      return void (secured ?? raw).destroy()
    case 'read':
      if (mayBeRead(connection, connection.outstanding - message[2])) secured?.resume()
  }
}

/** Everything that the main thread was given of a connection counts until it has destroyed its end, which it always does. */
const obeyForLeaving = (message: ConnectionOrder): void => {
  const id = message[1]
  const connection = leaving.get(id)
  if (connection === undefined) return
  if (message[0] === 'read') mayBeRead(connection, connection.outstanding - message[2])
  if (message[0] !== 'destroy') return
  leaving.delete(id)
  mayBeRead(connection, 0)
}

port.on('message', (messages: readonly ToTlsThread[]) => {
  for (const message of messages) obey(message)
})
