// HTTPS to one server that is known by its roots: a bounded number of connections that are kept open, no redirects, and answers
// that are bounded in size and time. A request is given to a connection only when the server has proven itself, so what
// fails before that has sent nothing.

import * as http from 'node:http'
import type { Duplex } from 'node:stream'
import type { Timers } from './timers.ts'
import { RequestFault } from './request-fault.ts'
import { connectTls } from './tls-client.ts'

export type PinnedServer = {
  /** Whom its certificate has to be for: a name, or an address. */
  readonly host: string
  readonly port: number
  /** PEM. Nothing else is trusted, and nothing of the system. */
  readonly roots: readonly string[]
  /** The certificate that is presented, PEM; null: none. */
  readonly identity: { readonly key: string; readonly cert: string } | null
  readonly mostConnections: number
  /** Until there is a connection, the wait for one of others included. */
  readonly connectMs: number
}

export type PinnedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** From the connection to the end of the answer. */
  readonly answerMs: number
  readonly mostBytes: number
}

export type PinnedAnswer = {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** Its code is Node's, or ETIMEDOUT, EMSGSIZE, ABORT_ERR. Undone is what no byte was written of. */
export class HttpsFault extends RequestFault {
  override readonly name = 'HttpsFault'
}

export type PinnedHttps = {
  /** Rejects with an HttpsFault. */
  exchange(request: PinnedRequest, signal: AbortSignal): Promise<PinnedAnswer>
  close(): void
}

/** Servers in Go close idle connections after 15 s or more. A request on one that is being closed would count as sent. */
const idleMs = 5_000
const longestHeader = 16 * 1024

export const openPinnedHttps = (timers: Timers, server: PinnedServer): PinnedHttps => {
  // An empty list would be taken for no list in some versions of Node, and then the system's roots are trusted.
  if (server.roots.length === 0) throw new Error('a server was about to be trusted by the roots of the system')
  const agent = new VettedConnections(timers, server)
  const waiting = new Set<() => void>()
  let taken = 0
  const leave = (): void => {
    const [next] = waiting
    if (next === undefined) taken -= 1
    else next()
  }

  const exchange = (request: PinnedRequest, signal: AbortSignal): Promise<PinnedAnswer> =>
    new Promise((resolve, reject) => {
      let call: http.ClientRequest | null = null
      let isUnsent = true
      let isOver = false
      const settle = (): boolean => {
        if (isOver) return false
        isOver = true
        cancelDeadline()
        signal.removeEventListener('abort', stop)
        // A connection can be used again only in a later turn: another one would be opened for what comes next.
        if (!waiting.delete(begin)) timers.soon(leave)
        return true
      }
      const fail = (code: string, message: string): void => {
        if (!settle()) return
        reject(new HttpsFault(message, code, isUnsent))
        call?.destroy()
      }
      const failWith = (error: NodeJS.ErrnoException): void => fail(error.code ?? 'ECONNRESET', error.message)
      const stop = (): void => fail('ABORT_ERR', 'stopped')
      let cancelDeadline = timers.after(server.connectMs, () => fail('ETIMEDOUT', 'no connection in time'))

      const begin = (): void => {
        waiting.delete(begin)
        const body = request.body === null ? null : Buffer.from(request.body)
        try {
          call = http.request({
            agent,
            host: server.host,
            port: server.port,
            method: request.method,
            path: request.path,
            headers: { ...request.headers, ...(body === null ? {} : { 'content-length': String(body.length) }) },
            maxHeaderSize: longestHeader,
          })
        } catch (error) {
          // A path or a header that HTTP cannot carry.
          return failWith(error as NodeJS.ErrnoException)
        }
        call.on('socket', () => {
          if (isOver) return
          isUnsent = false
          cancelDeadline()
          cancelDeadline = timers.after(request.answerMs, () => fail('ETIMEDOUT', 'no answer in time'))
        })
        call.on('error', failWith)
        call.on('close', () => fail('ECONNRESET', 'the connection was closed'))
        call.on('response', (response) => {
          const chunks: Buffer[] = []
          let bytes = 0
          response.on('data', (chunk: Buffer) => {
            bytes += chunk.length
            if (bytes > request.mostBytes) fail('EMSGSIZE', `the answer has more than ${request.mostBytes} bytes`)
            else chunks.push(chunk)
          })
          response.on('error', failWith)
          response.on('end', () => {
            if (!settle()) return
            const { statusCode = 0, headers } = response
            resolve({ status: statusCode, headers, body: Buffer.concat(chunks).toString('utf8') })
          })
        })
        call.end(body ?? undefined)
      }

      signal.addEventListener('abort', stop)
      waiting.add(begin)
      if (signal.aborted) return stop()
      if (taken >= server.mostConnections) return
      taken += 1
      begin()
    })

  return { exchange, close: () => agent.end() }
}

/** Node takes an error alone, too. */
type HandOver = (error: Error | null, connection: Duplex) => void

/** Hands out connections to one server, each of which has proven to be that server. */
class VettedConnections extends http.Agent {
  readonly #ended = new AbortController()
  readonly #connect: () => Promise<Duplex>

  constructor(timers: Timers, { host, port, roots, identity, connectMs, mostConnections }: PinnedServer) {
    super({ keepAlive: true, maxFreeSockets: mostConnections, timeout: idleMs, scheduling: 'lifo' })
    const credentials = { ca: [...roots], rejectUnauthorized: true, ...identity }
    const target = { host, port, credentials, timeoutMs: connectMs, minVersion: 'TLSv1.2', vet: () => null } as const
    this.#connect = () => connectTls(timers, target, this.#ended.signal)
  }

  override createConnection(_options: http.ClientRequestArgs, handOver: HandOver): null {
    void this.#connectFor(handOver)
    return null
  }

  async #connectFor(handOver: HandOver): Promise<void> {
    const connection = await this.#connect().catch((error: unknown) => error as Error)
    if (connection instanceof Error) (handOver as (error: Error) => void)(connection)
    else handOver(null, connection)
  }

  end(): void {
    this.#ended.abort()
    this.destroy()
  }
}
