// Calls of short clients: to the operator listener over its Unix socket, loopback HTTP or TLS, and to other servers over TLS.
// Redirects are not followed and certificate verification cannot be turned off.

// By name: what is used is loaded when it is used (scripts/build-parts.ts), and TLS alone is a third of the start of a command.
import { Agent, request as httpRequest, type RequestOptions } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest, type RequestOptions as TlsRequestOptions } from 'node:https'

export type HttpTarget =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'http'; readonly host: string; readonly port: number }
  /** `ca`: PEM of the roots to trust instead of the system's. `identity`: the certificate that is presented, PEM. */
  | {
      readonly kind: 'https'
      readonly host: string
      readonly port: number
      readonly ca: string | null
      readonly identity?: { readonly key: string; readonly cert: string }
    }

export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** For the whole exchange. */
  readonly timeoutMs: number
  /** Of what comes back; left out: as much as an operator listener may say. */
  readonly mostBytes?: number
}

export type HttpReply = { readonly status: number; readonly body: string }

export type HttpClient = {
  /** Rejects with Node's error, which has a `code`; ETIMEDOUT when the time is over, EMSGSIZE when too much comes back. */
  send(request: HttpRequest): Promise<HttpReply>
  close(): void
}

const longestReplyBytes = 64 * 1024 * 1024

export const openHttpClient = (target: HttpTarget): HttpClient => {
  const pool = { keepAlive: true, maxSockets: 16 }
  const agent = target.kind === 'https' ? new TlsAgent(pool) : new Agent(pool)
  return {
    send: (request) => exchange(target, agent, request),
    close: () => agent.destroy(),
  }
}

const exchange = (target: HttpTarget, agent: Agent, request: HttpRequest): Promise<HttpReply> =>
  new Promise((resolve, reject) => {
    const body = request.body === null ? null : Buffer.from(request.body)
    const options = {
      ...address(target),
      agent,
      method: request.method,
      path: request.path,
      headers: { ...request.headers, ...(body === null ? {} : { 'content-length': String(body.length) }) },
    }
    const call = target.kind === 'https' ? tlsRequest(options) : httpRequest(options)
    const deadline = setTimeout(() => call.destroy(failed('ETIMEDOUT', 'no answer in time')), request.timeoutMs)
    call.on('close', () => clearTimeout(deadline))
    call.on('error', reject)
    call.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > (request.mostBytes ?? longestReplyBytes)) call.destroy(failed('EMSGSIZE', 'the answer is too long'))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    call.end(body ?? undefined)
  })

const address = (target: HttpTarget): RequestOptions & TlsRequestOptions => {
  switch (target.kind) {
    // Without TLS there is no server name. Node would look for one all the same, by an expression that takes milliseconds to compile.
    case 'unix':
      return { socketPath: target.socketPath, servername: '' }
    case 'http':
      return { host: target.host, port: target.port, servername: '' }
    case 'https':
      return {
        host: target.host,
        port: target.port,
        minVersion: 'TLSv1.3',
        rejectUnauthorized: true,
        ...(target.ca === null ? {} : { ca: target.ca }),
        ...target.identity,
      }
  }
}

const failed = (code: string, message: string): Error => Object.assign(new Error(message), { code })
