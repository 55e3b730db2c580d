import { constants } from 'node:crypto'
import * as http from 'node:http'
import * as https from 'node:https'
import type { Server } from 'node:https'
import type { RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { droppable } from './dropped-requests.ts'
import { ThreadSocket } from './thread-socket.ts'
import type { Timers } from './timers.ts'

export type { Server as HttpsServer } from 'node:https'
export type { TLSSocket } from 'node:tls'
export type { IncomingMessage } from 'node:http'
export type { Duplex } from 'node:stream'

/** What HTTP is spoken on: the TLS socket of this thread, or this thread's end of one. */
export type SecuredSocket = TLSSocket | ThreadSocket

export type TlsServerOptions = {
  readonly keyPem: string
  readonly chainPem: string
  /** Given: a client certificate is asked for, naming these authorities. The caller judges what comes. */
  readonly clientRoots: readonly string[] | null
  readonly rejectUnauthorized: boolean
}

/**
 * Every suite of TLS 1.3 that OpenSSL offers, the one with SHA-256 first: a handshake hashes all it says several times, and
 * processors have instructions for SHA-256 and not for SHA-384.
 */
const ciphers = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256'

/**
 * TLS 1.3 only and no resumption: Node accepts an expired client certificate on a resumed session (ruling 14). Renewing
 * the certificate has to pass every one of these options again, so both go through this function.
 */
export const secureOptions = ({ keyPem, chainPem, clientRoots, rejectUnauthorized }: TlsServerOptions) => ({
  key: keyPem,
  cert: chainPem,
  minVersion: 'TLSv1.3' as const,
  maxVersion: 'TLSv1.3' as const,
  ciphers,
  secureOptions: constants.SSL_OP_NO_TICKET,
  ecdhCurve: 'auto',
  ALPNProtocols: ['http/1.1'],
  requestCert: clientRoots !== null,
  rejectUnauthorized,
  ...(clientRoots === null ? {} : { ca: [...clientRoots] }),
})

const second = 1000
export const handshakeWithinMs = 10 * second

const httpOptions = (server: () => Server | http.Server) => ({
  ...droppable,
  headersTimeout: 10 * second,
  requestTimeout: 30 * second,
  keepAliveTimeout: 75 * second,
  connectionsCheckingInterval: 5 * second,
  maxHeaderSize: 16 * 1024,
  // Any other protocol a caller offers to change to (h2c) is not taken up, and its request is answered as it is.
  shouldUpgradeCallback: ({ headers }: http.IncomingMessage) =>
    server().listenerCount('upgrade') > 0 && headers.upgrade?.trim().toLowerCase() === 'websocket',
})

export const createTlsServer = (options: TlsServerOptions, onRequest: RequestListener): Server => {
  const server: Server = https.createServer(
    { ...secureOptions(options), ...httpOptions(() => server), handshakeTimeout: handshakeWithinMs },
    onRequest,
  )
  return server
}

/** A server like it that accepts nothing itself: connections are emitted to it once other threads have secured them. */
export const createThreadedServer = (onRequest: RequestListener): http.Server => {
  const server: http.Server = http.createServer(
    httpOptions(() => server),
    onRequest,
  )
  // Node begins to watch the time limits of connections, and to know which of them are idle, when a server listens.
  server.emit('listening')
  return server
}

export const replaceServerIdentity = (server: Server, options: TlsServerOptions): void => {
  server.setSecureContext(secureOptions(options))
}

/** The presented client certificate, DER; null when there was none. */
export const peerCertificate = (socket: SecuredSocket): Buffer | null => {
  if (socket instanceof ThreadSocket)
    return socket.certificate === null ? null : Buffer.from(socket.certificate, 'latin1')
  const certificate = socket.getPeerX509Certificate()
  return certificate === undefined ? null : certificate.raw
}

/**
 * TLS hands one write to the kernel in a turn of the event loop, and a plain `destroy` loses those behind it. Here all of them
 * go out, if the other end takes them within a while. It is not waited for otherwise.
 */
export const destroyWhenSent = (timers: Pick<Timers, 'after'>, socket: Duplex, withinMs: number): void => {
  const cancel = timers.after(withinMs, () => socket.destroy(), 'background')
  socket.once('close', cancel)
  socket.end(() => socket.destroy())
}
