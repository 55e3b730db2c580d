// A WebSocket over an existing connection, whose server the caller has verified.

import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { TlsSocket } from './tls-client.ts'

export type WebSocketTarget = {
  /** Ours from now on. */
  readonly connection: TlsSocket
  readonly url: string
  readonly protocol: string
  /** Sent with the upgrade. */
  readonly headers: Readonly<Record<string, string>>
  readonly longestMessage: number
  readonly handshakeTimeoutMs: number
}

/** Exactly one of `refused`, `failed` and `closed` comes, and nothing after it. */
export type WebSocketEvents = {
  opened(): void
  text(message: string): void
  /** A message that is not text. */
  binary(): void
  /** Any sign of life: a message, a ping, a pong. */
  received(): void
  /** A ping of ours was answered. */
  pong(payload: string): void
  /** The server answered the upgrade with something else. */
  refused(status: number, retryAfter: string | null, body: string): void
  failed(error: Error): void
  closed(code: number, reason: string): void
}

export type ClientWebSocket = {
  send(message: string): void
  ping(payload: string): void
  /** Sends a close frame; the connection is cut if the other side does not answer. */
  close(code: number, reason: string): void
  /** Cuts the connection. */
  destroy(): void
  /** Bytes sent but not yet taken by the system. */
  waitingBytes(): number
}

const longestRefusal = 64 * 1024

export const openWebSocket = (target: WebSocketTarget, events: WebSocketEvents): ClientWebSocket => {
  const socket = new WebSocket(target.url, target.protocol, {
    createConnection: () => target.connection,
    headers: target.headers,
    maxPayload: target.longestMessage,
    handshakeTimeout: target.handshakeTimeoutMs,
    perMessageDeflate: false,
  })
  let ended = false
  const end = (tell: () => void): void => {
    if (ended) return
    ended = true
    socket.terminate()
    tell()
  }
  socket.on('open', () => {
    if (!ended) events.opened()
  })
  socket.on('message', (data, isBinary) => {
    if (ended) return
    events.received()
    if (isBinary) events.binary()
    else events.text(textOf(data))
  })
  socket.on('ping', () => events.received())
  socket.on('pong', (payload) => {
    events.received()
    events.pong(payload.toString('utf8'))
  })
  socket.on('error', (error) => end(() => events.failed(error)))
  socket.on('close', (code, reason) => end(() => events.closed(code, reason.toString('utf8'))))
  socket.on('unexpected-response', (_request, response) => {
    readRefusal(response, (body) =>
      end(() => events.refused(response.statusCode ?? 0, response.headers['retry-after'] ?? null, body)),
    )
  })
  const open = (): boolean => !ended && socket.readyState === WebSocket.OPEN
  return {
    send: (message) => {
      if (open()) socket.send(message)
    },
    ping: (payload) => {
      if (open()) socket.ping(payload)
    },
    close: (code, reason) => {
      if (open()) socket.close(code, reason)
      else end(() => events.closed(1006, ''))
    },
    destroy: () => end(() => events.closed(1006, '')),
    waitingBytes: () => socket.bufferedAmount,
  }
}

const textOf = (data: Buffer | ArrayBuffer | Buffer[]): string =>
  (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8')

/** A body that is cut short or too long is still a refusal, only without words. */
const readRefusal = (response: IncomingMessage, done: (body: string) => void): void => {
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > longestRefusal) response.destroy()
    else chunks.push(chunk)
  })
  response.on('error', () => done(''))
  response.on('close', () => done(Buffer.concat(chunks).toString('utf8')))
}
