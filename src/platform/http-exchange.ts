// One HTTP/1.1 request and its answer on a connection that exists already.

import * as http from 'node:http'
import type { Duplex } from 'node:stream'
import type { Timers } from './timers.ts'

export type ExchangeRequest = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** For the Host header. */
  readonly authority: string
  readonly json: object | null
  readonly headers?: Readonly<Record<string, string>>
  /** For the whole exchange. */
  readonly timeoutMs: number
  readonly longestAnswer: number
}

export type ExchangeAnswer = { readonly status: number; readonly retryAfter: string | null; readonly body: string }

/** The connection is closed afterwards, whatever happened. Rejects with an error that has a `code`. */
export const exchangeOn = (
  timers: Timers,
  connection: Duplex,
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<ExchangeAnswer> =>
  new Promise<ExchangeAnswer>((resolve, reject) => {
    const body = request.json === null ? null : Buffer.from(JSON.stringify(request.json))
    const call = http.request({
      createConnection: () => connection,
      method: request.method,
      path: request.path,
      headers: {
        ...request.headers,
        host: request.authority,
        connection: 'close',
        accept: 'application/json',
        ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) }),
      },
    })
    const fail = (code: string, message: string): void => void call.destroy(Object.assign(new Error(message), { code }))
    const stop = (): void => fail('ABORT_ERR', 'stopped')
    const cancelDeadline = timers.after(request.timeoutMs, () => fail('ETIMEDOUT', 'no answer in time'))
    signal.addEventListener('abort', stop)
    call.on('close', () => {
      cancelDeadline()
      signal.removeEventListener('abort', stop)
      reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
    })
    call.on('error', reject)
    call.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > request.longestAnswer) fail('EMSGSIZE', 'the answer is too long')
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers['retry-after'] ?? null,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
    if (signal.aborted) return stop()
    call.end(body ?? undefined)
  }).finally(() => connection.destroy())
