// The one way to a server of an outside issuer: JSON over HTTPS, with a trust of its own. What it answers is bounded, and whatever
// it is, it has been checked for nothing but being JSON.

import { parseHttpDate } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { RequestFault } from '#platform/request-fault.ts'
import { HttpsFault, openPinnedHttps } from '#platform/pinned-https.ts'
import { targetOf } from '#platform/tls-client.ts'

export type IssuerServer = {
  /** `https://ca.example:9000`; the paths of requests follow it. */
  readonly address: string
  /** PEM: what its TLS certificate has to hang under. The roots of the system are not trusted. */
  readonly roots: readonly string[]
  /** What this client presents, PEM; null: nothing. */
  readonly identity: { readonly key: string; readonly cert: string } | null
  /** As many as the issuer has slots. */
  readonly mostConnections: number
  readonly limits?: IssuerLimits
}

export type IssuerLimits = { readonly connectMs: number; readonly answerMs: number }

export type IssuerRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'LIST' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: object
  /** Left out: as much as an answer to a signature may have. */
  readonly mostBytes?: number
}

export type IssuerAnswer = {
  readonly status: number
  /** Null where the answer has no body. */
  readonly json: unknown
  /** When it was answered by the clock of the server, to the second; null: it does not say. */
  readonly dateMs: number | null
}

export type IssuerClient = {
  /**
   * Any status but a redirect is an answer. Rejects with an IssuerFault: nothing is known then about what the issuer did,
   * unless `isUndone`.
   */
  ask(request: IssuerRequest, signal: AbortSignal): Promise<IssuerAnswer>
  close(): void
}

/** `failed`: the issuer says that it cannot answer now. The client does not look at that; its callers do. */
export type IssuerFaultCode =
  'unreachable' | 'untrusted' | 'timeout' | 'cut' | 'too-long' | 'not-json' | 'redirect' | 'stopped' | 'failed'

/** Its message names the server and is fit for logs and alerts: nothing that was sent is in it. Undone is what no byte was written of. */
export class IssuerFault extends RequestFault<IssuerFaultCode> {
  override readonly name = 'IssuerFault'
}

const usualLimits: IssuerLimits = { connectMs: 5_000, answerMs: 15_000 }

const mostBytesOfAnswer = 1024 * 1024
export const mostBytesOfList = 10 * 1024 * 1024

export const openIssuerClient = (
  timers: Timers,
  { address, roots, identity, mostConnections, limits = usualLimits }: IssuerServer,
): IssuerClient => {
  const url = new URL(address)
  if (url.protocol !== 'https:' || url.username !== '' || url.search !== '' || url.hash !== '')
    throw new Error('the address of an outside issuer is https://HOST:PORT')
  const prefix = url.pathname.replace(/\/$/, '')
  const https = openPinnedHttps(timers, {
    ...targetOf(url),
    roots,
    identity,
    mostConnections,
    connectMs: limits.connectMs,
  })
  const faulty = (why: string, code: IssuerFaultCode, isUndone = false): IssuerFault =>
    new IssuerFault(`${url.host}: ${why}`, code, isUndone)

  const ask: IssuerClient['ask'] = async (request, signal) => {
    const { status, headers, body } = await https
      .exchange(
        {
          method: request.method,
          path: `${prefix}${request.path}`,
          headers: {
            ...request.headers,
            host: url.host,
            accept: 'application/json',
            ...(request.json === undefined ? {} : { 'content-type': 'application/json' }),
          },
          body: request.json === undefined ? null : JSON.stringify(request.json),
          answerMs: limits.answerMs,
          mostBytes: request.mostBytes ?? mostBytesOfAnswer,
        },
        signal,
      )
      .catch((error: unknown) => {
        throw error instanceof HttpsFault ? faulty(...sentenceOf(error, limits), error.isUndone) : error
      })
    if (status >= 300 && status < 400) throw faulty(`it answers with a redirect (${status})`, 'redirect')
    const dateMs = headers.date === undefined ? null : parseHttpDate(headers.date)
    if (body === '') return { status, json: null, dateMs }
    if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? ''))
      throw faulty(`it answers with something else than JSON (${status})`, 'not-json')
    try {
      return { status, json: JSON.parse(body) as unknown, dateMs }
    } catch {
      throw faulty(`what it calls JSON is none (${status})`, 'not-json')
    }
  }
  return { ask, close: () => https.close() }
}

const sentenceOf = ({ code, message, isUndone }: HttpsFault, limits: IssuerLimits): [string, IssuerFaultCode] => {
  switch (code) {
    case 'ABORT_ERR':
      return ['stopped', 'stopped']
    case 'EMSGSIZE':
      return [message, 'too-long']
    case 'ETIMEDOUT':
      return isUndone
        ? [`no connection within ${limits.connectMs / 1000} s`, 'timeout']
        : [`no answer within ${limits.answerMs / 1000} s`, 'timeout']
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return ['its certificate is for another name', 'untrusted']
    case 'CERT_HAS_EXPIRED':
      return ['its certificate has expired', 'untrusted']
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return [`its certificate does not hang under a pinned root (${code})`, 'untrusted']
    default:
      if (code.startsWith('HPE_')) return [`what it answers is not HTTP (${code})`, 'not-json']
      return isUndone
        ? [`no connection (${code})`, 'unreachable']
        : [`the connection was lost before the answer was complete (${code})`, 'cut']
  }
}
