// A TLS server behind load balancers. On a connection of a listed balancer, the header that names the real caller is read off
// the socket before TLS begins. On any other connection no header is expected, and one that is sent breaks the handshake.

import type { Socket } from 'node:net'
import type { HttpsServer, TLSSocket } from './tls-server.ts'
import { endsOf, setProxiedCaller } from './caller-address.ts'
import { parseProxyHeader } from './proxy-header.ts'
import type { Timers } from './timers.ts'

/** `unread`: it ended before its header did. */
export const headerTroubles = ['invalid', 'late', 'unread'] as const
export type HeaderTrouble = (typeof headerTroubles)[number]

export type Balancers = {
  /** Whether a connection from this address has to begin with a header; as the socket spells it. */
  has(address: string): boolean
  /** Called for every connection that was closed for lack of a header. */
  refused(trouble: HeaderTrouble, from: string, why: string): void
}

export type HeaderReading = {
  /** Cuts every connection whose header is still awaited, and takes no more of them. */
  close(): void
}

const headerWithinMs = 3000

/** Before the server listens. A connection whose header is awaited counts as one of its connections. Null: no header is required. */
export const readProxyHeaders = (server: HttpsServer, balancers: Balancers | null, timers: Timers): HeaderReading => {
  if (balancers === null) return { close: () => {} }
  const waiting = new Set<Socket>()
  let closed = false

  /** Callers by the two ends of the balancer's connection: TLS wraps the socket, and says the same of its ends. */
  const callers = new Map<string, string>()
  const begin = server.listeners('connection')
  server.removeAllListeners('connection')
  const beginTls = (socket: Socket): void => {
    for (const listener of begin) listener.call(server, socket)
  }

  server.on('connection', (socket: Socket) => {
    const from = socket.remoteAddress
    // Already closed: its address can no longer be read.
    if (from === undefined || closed) return void socket.destroy()
    if (!balancers.has(from)) return beginTls(socket)
    waiting.add(socket)
    const key = endsOf(socket)
    readProxyHeader(socket, timers, (outcome) => {
      waiting.delete(socket)
      if (outcome.kind === 'trouble') {
        if (!closed) balancers.refused(outcome.trouble, from, outcome.why)
        return void socket.destroy()
      }
      callers.set(key, outcome.caller ?? from)
      setProxiedCaller(socket, outcome.caller ?? from)
      socket.once('close', () => callers.delete(key))
      beginTls(socket)
    })
  })
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const from = socket.remoteAddress
    if (from === undefined) return void socket.destroy()
    if (!balancers.has(from)) return
    const caller = callers.get(endsOf(socket))
    if (caller === undefined) return void socket.destroy()
    setProxiedCaller(socket, caller)
  })
  return {
    close() {
      closed = true
      for (const socket of waiting) socket.destroy()
    },
  }
}

export type HeaderOutcome =
  /** Null: the balancer itself. */
  | { readonly kind: 'read'; readonly caller: string | null }
  | { readonly kind: 'trouble'; readonly trouble: HeaderTrouble; readonly why: string }

/** Takes the header and not a byte more: what follows stays in the socket for TLS to find. */
export const readProxyHeader = (socket: Socket, timers: Timers, done: (outcome: HeaderOutcome) => void): void => {
  let bytes = Buffer.alloc(0)
  const finish = (outcome: HeaderOutcome): void => {
    cancel()
    socket.off('readable', onReadable).off('end', onEnd).off('error', onEnd).off('close', onEnd)
    // An error that is on its way already would end the process.
    if (outcome.kind === 'trouble') socket.on('error', () => {})
    done(outcome)
  }
  const trouble = (kind: HeaderTrouble, why: string): void => finish({ kind: 'trouble', trouble: kind, why })
  const onReadable = (): void => {
    for (;;) {
      const header = parseProxyHeader(bytes)
      if (header.kind === 'invalid') return trouble('invalid', header.why)
      if (header.kind === 'local') return finish({ kind: 'read', caller: null })
      if (header.kind === 'proxied') return finish({ kind: 'read', caller: header.address })
      const more = socket.read(Math.min(header.bytes - bytes.length, socket.readableLength)) as Buffer | null
      if (more === null) return
      bytes = Buffer.concat([bytes, more])
    }
  }
  const onEnd = (): void => trouble('unread', `it ended after ${bytes.length} bytes`)
  const cancel = timers.after(headerWithinMs, () => trouble('late', `not within ${headerWithinMs / 1000} s`))
  socket.on('readable', onReadable).on('end', onEnd).on('error', onEnd).on('close', onEnd)
}
