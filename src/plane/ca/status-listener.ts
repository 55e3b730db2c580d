// The listener for OCSP and revocation lists: plain HTTP, since the answers are signed. A handful of paths, small requests, few
// connections, and no authentication.

import { failed, type AnswerOcsp, type OcspOutcome, type OcspReply } from './answer-ocsp.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import type { ListKind, RevocationLists } from './revocation-lists.ts'
import { ocspPath } from '#plane/authority/ca-signer.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import { largestOcspRequest } from '#pki/ocsp-request.ts'
import { boundServer } from '#platform/bounded-server.ts'
import { httpDate } from '#platform/clock.ts'
import type { ConnectionLimits } from '#platform/connections.ts'
import {
  createHttpServer,
  listenTcp,
  stopServer,
  type HttpRequest,
  type HttpResponse,
  type SharedAddress,
} from '#platform/http-server.ts'
import { askForBody, headerMistake } from '#plane/http/header-rules.ts'
import { isAborted } from '#plane/http/request-error.ts'
import { sourceAddress } from '#platform/caller-address.ts'
import type { Core } from '#plane/core/core.ts'

export type StatusListenerParts = {
  readonly answerOcsp: AnswerOcsp
  readonly lists: Pick<RevocationLists, 'list'>
  /** What callers may cost: every call is charged. */
  readonly budget: CallerBudget
  readonly limits: ConnectionLimits
  readonly onOcsp: (outcome: OcspOutcome) => void
  readonly onOverLimit: () => void
  /** A caller hung up before its question was complete. */
  readonly onAborted: (source: string) => void
}

type StatusCore = Pick<Core, 'store' | 'timers' | 'log'>

export type StatusListener = {
  listen(at: SharedAddress): Promise<number>
  stop(withinMs: number): Promise<void>
}

type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
}

export const openStatusListener = (core: StatusCore, parts: StatusListenerParts): StatusListener => {
  const { timers, log } = core
  const server = createHttpServer((request, response) => {
    answer(core, parts, request, response)
      .catch((error: unknown): Reply => {
        if (error instanceof Error && isAborted(request, error)) {
          parts.onAborted(sourceAddress(request.socket))
          return plain(400, 'the question was not complete')
        }
        log.warn({ err: error }, 'a question about a certificate could not be answered')
        return isOcsp(request) ? ocspReply(parts, failed('internalError'), 500) : plain(500, 'try again')
      })
      .then((reply) => send(request, response, reply))
      .catch((error: unknown) => log.debug({ err: error }, 'an answer about a certificate could not be sent'))
  })
  boundServer(server, {
    ...parts.limits,
    unreadable: (tooLarge) => `HTTP/1.1 ${tooLarge ? 431 : 400} \r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
  })
  return {
    listen: ({ host, port, shared }) => listenTcp(server, host, port, shared),
    stop: (withinMs) => stopServer(server, timers, withinMs),
  }
}

const isOcsp = ({ url = '' }: HttpRequest): boolean => url === ocspPath || url.startsWith(`${ocspPath}/`)
const listShape = /^\/crl\/([0-9a-f]{1,128})(-delta)?\.crl$/

const answer = async (
  { store }: StatusCore,
  parts: StatusListenerParts,
  request: HttpRequest,
  response: HttpResponse,
): Promise<Reply> => {
  const { method, url = '' } = request
  const source = sourceAddress(request.socket)
  if (parts.budget.charge(source) === 'over') {
    parts.onOverLimit()
    const seconds = String(Math.ceil(parts.budget.retryAfterMs() / 1000))
    return plain(429, 'too many questions', { 'retry-after': seconds })
  }
  const mistake = headerMistake(request)
  if (mistake !== null) return plain(400, mistake.detail ?? 'not acceptable')
  if (isOcsp(request)) {
    if (method === 'POST' && url === ocspPath) return answerPosted(parts, request, response, source)
    if (method === 'GET' && url !== ocspPath) return answerInPath(parts, url.slice(ocspPath.length + 1), source)
    return plain(405, 'no such method here', { allow: url === ocspPath ? 'POST' : 'GET' })
  }
  const [, issuer, delta] = listShape.exec(url) ?? []
  if (issuer === undefined) return plain(404, 'there is nothing here')
  if (method !== 'GET') return plain(405, 'no such method here', { allow: 'GET' })
  const list = { issuer, kind: delta === undefined ? 'full' : 'delta' } as const
  return answerList(store.replicas, parts.lists, request, list)
}

const answerPosted = async (
  parts: StatusListenerParts,
  request: HttpRequest,
  response: HttpResponse,
  source: string,
): Promise<Reply> => {
  if (request.headers['content-type'] !== 'application/ocsp-request')
    return plain(415, 'it takes application/ocsp-request')
  askForBody(request, response)
  const question = await bodyOf(request)
  if (question === null) return plain(413, `more than ${largestOcspRequest} bytes`, { connection: 'close' })
  return ocspReply(parts, await answered(parts, question, source))
}

/** A question about many certificates costs what as many questions do. */
const answered = async (parts: StatusListenerParts, question: Uint8Array, source: string): Promise<OcspReply> => {
  const reply = await parts.answerOcsp(question)
  for (let more = 1; more < reply.outcomes.length; more++) parts.budget.charge(source)
  return reply
}

/** Null: longer than any valid request. */
const bodyOf = async (request: HttpRequest): Promise<Uint8Array | null> => {
  if (Number(request.headers['content-length'] ?? 0) > largestOcspRequest) return null
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length
    if (length > largestOcspRequest) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** RFC 6960, A.1: base64, in which `/`, `+` and `=` may be written as they are or escaped. */
const answerInPath = async (parts: StatusListenerParts, text: string, source: string): Promise<Reply> => {
  const question = questionIn(text)
  return ocspReply(parts, question === null ? failed('malformedRequest') : await answered(parts, question, source))
}

const questionIn = (text: string): Uint8Array | null => {
  const base64 = text.replace(/%2f/gi, '/').replace(/%2b/gi, '+').replace(/%3d/gi, '=')
  if (base64.length > (largestOcspRequest * 4) / 3 + 4 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null
  return Buffer.from(base64, 'base64')
}

const ocspReply = (parts: StatusListenerParts, { der, outcomes, goodFrom }: OcspReply, status = 200): Reply => {
  for (const outcome of outcomes) parts.onOcsp(outcome)
  const later = outcomes[0] === 'tryLater'
  return {
    status: later ? 503 : status,
    headers: {
      'content-type': 'application/ocsp-response',
      ...(later ? { 'retry-after': '2' } : {}),
      ...(goodFrom === null ? { 'cache-control': 'no-store' } : cached(goodFrom)),
    },
    body: der,
  }
}

const answerList = async (
  replicas: Pick<Replicas, 'standing'>,
  lists: StatusListenerParts['lists'],
  request: HttpRequest,
  { issuer, kind }: { readonly issuer: string; readonly kind: ListKind },
): Promise<Reply> => {
  const list = replicas.standing().kind === 'serving' ? await lists.list(issuer, kind) : null
  // Asked behind it: a replica that lost touch while the list was made may not know of a revocation.
  const standing = replicas.standing()
  if (standing.kind !== 'serving') return plain(503, standing.why, { 'retry-after': '2' })
  if (list === null) return plain(404, 'there is no list of such an issuer here; OCSP answers for all')
  const etag = `"${list.number}-${list.nextUpdateMs}"`
  const headers = { ...cached(list), etag }
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' }
  return { status: 200, headers: { ...headers, 'content-type': 'application/pkix-crl' }, body: list.der }
}

/** Caches must not delay a revocation for long; the client itself may rely on the answer for longer. */
const cachedForSeconds = 10

const cached = (times: { readonly thisUpdateMs: number; readonly nextUpdateMs: number }) => ({
  'cache-control': `public, no-transform, must-revalidate, max-age=${cachedForSeconds}`,
  'last-modified': httpDate(times.thisUpdateMs),
})

const plain = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers },
  body: `${text}\n`,
})

const send = (request: HttpRequest, response: HttpResponse, { status, headers, body }: Reply): void => {
  const length = status === 304 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const connection = request.complete ? {} : { connection: 'close' }
  response
    .writeHead(status, { ...headers, ...length, ...connection, 'x-content-type-options': 'nosniff' })
    .end(status === 304 ? undefined : body)
}
