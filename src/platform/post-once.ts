// One POST to one address, for receivers elsewhere. Nothing is resolved here, no redirect is followed, and of the answer
// only the status is looked at.

import * as http from 'node:http'
import * as https from 'node:https'
import * as tls from 'node:tls'
import type { Timers } from './timers.ts'

export type PostTarget = {
  /** Where the connection goes. */
  readonly address: string
  readonly port: number
  /** What the receiver's certificate has to be for. */
  readonly host: string
  /** For the Host header. */
  readonly authority: string
  /** Null: without TLS. */
  readonly tls: { readonly roots: readonly string[] } | null
  readonly path: string
}

export type PostRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** For everything, from the connection to the end of the answer. */
  readonly timeoutMs: number
}

/** What is read of an answer before the connection is cut. */
const longestAnswer = 4096

/** The roots this system trusts, and those given. */
export const systemRootsAnd = (more: readonly string[]): readonly string[] => [
  ...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system'), ...more]),
]

/** The status. Rejects with an error that has a `code`; ETIMEDOUT when the time is over before there is a status. */
export const postOnce = (
  timers: Timers,
  target: PostTarget,
  { headers, body, timeoutMs }: PostRequest,
  signal: AbortSignal,
): Promise<number> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const bytes = Buffer.from(body)
    const options: https.RequestOptions = {
      host: target.address,
      port: target.port,
      path: target.path,
      method: 'POST',
      agent: false,
      maxHeaderSize: 8192,
      headers: {
        ...headers,
        host: target.authority,
        connection: 'close',
        'content-length': String(bytes.length),
      },
    }
    const call = target.tls === null ? http.request(options) : https.request({ ...options, ...tlsOptions(target) })
    let status: number | null = null
    const fail = (code: string, message: string): void => void call.destroy(Object.assign(new Error(message), { code }))
    const stop = (): void => fail('ABORT_ERR', 'stopped')
    const cancelDeadline = timers.after(timeoutMs, () => fail('ETIMEDOUT', 'no answer in time'))
    signal.addEventListener('abort', stop)
    call.on('error', (error) => {
      // With a status the answer is complete enough, however it ends.
      if (status === null) reject(error)
    })
    call.on('close', () => {
      cancelDeadline()
      signal.removeEventListener('abort', stop)
      if (status === null) reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
      else resolve(status)
    })
    call.on('response', (response) => {
      status = response.statusCode ?? 0
      let read = 0
      response.on('data', (chunk: Buffer) => {
        read += chunk.length
        if (read > longestAnswer) call.destroy()
      })
      response.on('error', () => call.destroy())
    })
    call.end(bytes)
  })

const tlsOptions = ({ host, address, tls: trust }: PostTarget): https.RequestOptions => ({
  ca: [...(trust?.roots ?? [])],
  rejectUnauthorized: true,
  minVersion: 'TLSv1.2',
  // An address is checked against the certificate as an address; SNI knows only names.
  ...(host === address ? {} : { servername: host }),
})
