// A TLS connection that is handed out only when it may be used.

import * as net from 'node:net'
import * as tls from 'node:tls'
import type { Timers } from './timers.ts'

export type TlsSocket = tls.TLSSocket

export type TlsTarget = {
  /** Whom the server has to be: a name, or an address. */
  readonly host: string
  /** Where to look for it. Left out: where the system says that the name leads. */
  readonly address?: string
  readonly port: number
  readonly timeoutMs: number
  /** Left out: TLS 1.3, which all of Muster's own servers speak. */
  readonly minVersion?: 'TLSv1.2'
  /** What decides whether the server is trusted, and who we are. Said outright: an environment variable could turn it off. */
  readonly credentials: Pick<tls.ConnectionOptions, 'ca' | 'cert' | 'key'> & { readonly rejectUnauthorized: boolean }
  /**
   * Called once, in the turn in which the handshake ends and before any other code has the socket. An error it returns
   * destroys the socket: nothing has been sent on it by then, and nothing will be.
   */
  vet(socket: TlsSocket): Error | null
}

/** Rejects with Node's error (it has a `code`), or with the one `vet` returned. */
export const connectTls = (timers: Timers, target: TlsTarget, signal: AbortSignal): Promise<TlsSocket> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const socket = tls.connect({
      ...target.credentials,
      host: target.address ?? target.host,
      port: target.port,
      ...(net.isIP(target.host) === 0 ? { servername: target.host } : {}),
      minVersion: target.minVersion ?? 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
    })
    const fail = (error: Error): void => {
      settle()
      socket.destroy()
      reject(error)
    }
    const stop = (): void => fail(Object.assign(new Error('stopped'), { code: 'ABORT_ERR' }))
    const cancelDeadline = timers.after(target.timeoutMs, () =>
      fail(Object.assign(new Error('no TLS connection in time'), { code: 'ETIMEDOUT' })),
    )
    const settle = (): void => {
      cancelDeadline()
      signal.removeEventListener('abort', stop)
    }
    signal.addEventListener('abort', stop)
    // Stays for the life of the socket: between two owners an error must not bring the process down.
    socket.on('error', fail)
    socket.once('secureConnect', () => {
      const objection = target.vet(socket)
      if (objection !== null) return fail(objection)
      settle()
      resolve(socket)
    })
    socket.once('close', () => fail(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })))
  })

const longestChain = 8

/** The certificates the server presented, DER, its own first; the root too, where it sent it. */
export const presentedChain = (socket: TlsSocket): Uint8Array[] => {
  const chain: Uint8Array[] = []
  const seen = new Set<string>()
  let certificate = socket.getPeerX509Certificate()
  while (certificate !== undefined && chain.length < longestChain && !seen.has(certificate.fingerprint256)) {
    seen.add(certificate.fingerprint256)
    chain.push(certificate.raw)
    certificate = certificate.issuerCertificate
  }
  return chain
}

/** A host as URLs spell it, without the brackets of an IPv6 address. */
export const targetOf = (url: URL): { host: string; port: number } => ({
  host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
  port: url.port === '' ? 443 : Number(url.port),
})
