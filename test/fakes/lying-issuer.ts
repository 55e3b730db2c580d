// An HTTPS server that answers an outside issuer's calls with whatever the test says: for lies that a real one cannot be made to tell.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { startLocalTlsServer } from '../process/local-tls-server.ts'

export type Asked = { readonly method: string; readonly path: string; readonly body: unknown }
export type Lie = (response: ServerResponse, asked: Asked) => void

export type LyingIssuer = {
  readonly address: string
  /** PEM. */
  readonly roots: readonly string[]
  /** What it was asked so far. */
  readonly asked: readonly Asked[]
  /** From now on. */
  answer(lie: Lie): void
}

/** JSON, unless `type` says otherwise. */
export const says =
  (status: number, body: object | string, type = 'application/json'): Lie =>
  (response) =>
    void response
      .writeHead(status, { 'content-type': type })
      .end(typeof body === 'string' ? body : JSON.stringify(body))

export const startLyingIssuer = async (t: Scope): Promise<LyingIssuer> => {
  const { server, target } = await startLocalTlsServer(t)
  const asked: Asked[] = []
  let lie: Lie = says(404, {})
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      const one = { method: request.method ?? '', path: request.url ?? '', body: text === '' ? null : JSON.parse(text) }
      asked.push(one)
      lie(response, one)
    })
  })
  cleanup(t, () => server.closeAllConnections())
  return { address: target.url, roots: target.roots, asked, answer: (next) => void (lie = next) }
}
