import { constants } from 'node:crypto'
import * as https from 'node:https'
import type { Server } from 'node:https'
import type { RequestListener } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { droppable } from './dropped-requests.ts'

export type { Server as HttpsServer } from 'node:https'
export type { TLSSocket } from 'node:tls'
export type { IncomingMessage } from 'node:http'
export type { Duplex } from 'node:stream'

export type TlsServerOptions = {
  readonly keyPem: string
  readonly chainPem: string
  /** Given: a client certificate is asked for, naming these authorities. The caller judges what comes. */
  readonly clientRoots: readonly string[] | null
  readonly rejectUnauthorized: boolean
}

/**
 * TLS 1.3 only and no resumption: Node accepts an expired client certificate on a resumed session (ruling 14). Renewing
 * the certificate has to pass every one of these options again, so both go through this function.
 */
const secureOptions = ({ keyPem, chainPem, clientRoots, rejectUnauthorized }: TlsServerOptions) => ({
  key: keyPem,
  cert: chainPem,
  minVersion: 'TLSv1.3' as const,
  maxVersion: 'TLSv1.3' as const,
  secureOptions: constants.SSL_OP_NO_TICKET,
  ecdhCurve: 'auto',
  ALPNProtocols: ['http/1.1'],
  requestCert: clientRoots !== null,
  rejectUnauthorized,
  ...(clientRoots === null ? {} : { ca: [...clientRoots] }),
})

const second = 1000

export const createTlsServer = (options: TlsServerOptions, onRequest: RequestListener): Server => {
  const server: Server = https.createServer(
    {
      ...secureOptions(options),
      ...droppable,
      handshakeTimeout: 10 * second,
      headersTimeout: 10 * second,
      requestTimeout: 30 * second,
      keepAliveTimeout: 75 * second,
      connectionsCheckingInterval: 5 * second,
      maxHeaderSize: 16 * 1024,
      // Any other protocol a caller offers to change to (h2c) is not taken up, and its request is answered as it is.
      shouldUpgradeCallback: ({ headers }) =>
        server.listenerCount('upgrade') > 0 && headers.upgrade?.trim().toLowerCase() === 'websocket',
    },
    onRequest,
  )
  return server
}

export const replaceServerIdentity = (server: Server, options: TlsServerOptions): void => {
  server.setSecureContext(secureOptions(options))
}

/** The presented client certificate, DER; null when there was none. */
export const peerCertificate = (socket: TLSSocket): Buffer | null => {
  const certificate = socket.getPeerX509Certificate()
  return certificate === undefined ? null : certificate.raw
}
