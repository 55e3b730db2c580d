// The two ways out of a call: its answer, or a refusal that is journaled and counted. Neither leaves a replica whose lease may be
// over.

import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { storeInDoubt } from '#domain/continuity/continuity.ts'
import type { Principal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Log } from '#platform/log.ts'
import { refusalResponse } from '#wire/core/refusal-response.ts'
import { inKnownWords } from '#wire/core/newer-codes.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { isKeyUnavailable, type KeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { StoreInDoubt, UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import { isAborted, requestError } from './request-error.ts'
import type { Answer } from './route.ts'
import { sourceAddress } from '#platform/caller-address.ts'
import { judgeStanding, type Callers } from './standing-gate.ts'

export type ReplyOptions = {
  /** Null while the store can be written to; decides what a fault is called. */
  readonly trouble: () => StoreTrouble | null
  readonly callers: Callers
  readonly standing: () => Standing
  /** Null: who was let in may still be answered. */
  readonly withdrawn?: (principal: Principal) => Refusal | null
  /** Called for every refusal, in the turn in which it is answered. */
  readonly onRefusal: (refused: Refused) => void
  /** A caller hung up before its request was complete. */
  readonly onAborted: (source: string, principal: Principal | null) => void
  readonly log: Log
}

export type StoreTrouble = 'disk' | 'database'

export const troubleOf = (store: Pick<Store, 'trouble' | 'isDiskTrouble'>): StoreTrouble | null => {
  if (store.trouble() === null) return null
  return store.isDiskTrouble() ? 'disk' : 'database'
}

const retryFaultAfterMs = 2000

/** How a fault is answered. Codes that agents of the last release know: one they do not know would send them to an operator. */
export const faultRefusal = (trouble: StoreTrouble | null): Refusal => {
  switch (trouble) {
    case 'disk':
      return refuse('DISK_TROUBLE')
    case 'database':
      return { ...refuse('UNAVAILABLE', 'the database takes no writes now'), retryAfterMs: retryFaultAfterMs }
    case null:
      return refuse('UNAVAILABLE')
  }
}

/** A replica is replaced in about this time. */
const retryUpgradeAfterMs = 30_000

const upgradeUnfinished = (what: string): Refusal => ({
  ...refuse('UPGRADE_UNFINISHED', what),
  retryAfterMs: retryUpgradeAfterMs,
})

const keyUnavailable = ({ code, message }: KeyUnavailable): Refusal => ({
  ...refuse(code, message),
  retryAfterMs: retryFaultAfterMs,
})

export type Refused = {
  readonly refusal: Refusal
  /** Null when it was refused before that was known. */
  readonly principal: Principal | null
  readonly source: string
  readonly method: string
  /** The route's path, never the caller's text; null when none matched. */
  readonly path: string | null
  readonly correlation: string
}

/** Where a request carries who it is from; set before its body is read. */
export const principalField = 'principal'

/** Null: not known yet. Requests whose address cannot be read never get the field. */
export const principalOf = (request: FastifyRequest): Principal | null =>
  principalField in request ? request.getDecorator<Principal | null>(principalField) : null

const json = 'application/json; charset=utf-8'

/** Whether a route is answered in every standing; kept with the route. */
export type RouteConfig = { readonly always: boolean }

/** Null: this replica may answer that call now. */
export const notNow = (options: ReplyOptions, request: FastifyRequest): Refusal | null => {
  const { always } = request.routeOptions.config as Partial<RouteConfig>
  const about = { method: request.method, ...(always === true && { always }) }
  return judgeStanding(options.standing(), options.callers, about)
}

/** Null: what was found may still be said to this caller. It may have taken a while to find. */
export const notAllowedNow = (options: ReplyOptions, request: FastifyRequest): Refusal | null => {
  const principal = principalOf(request)
  return notNow(options, request) ?? (principal === null ? null : (options.withdrawn?.(principal) ?? null))
}

export const sendAnswer = (
  options: ReplyOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  { status, body, contentType, etag }: Answer,
): FastifyReply => {
  const no = notAllowedNow(options, request)
  if (no !== null) return sendRefusal(options, request, reply, no)
  reply.headers({
    'cache-control': etag === undefined ? 'no-store' : 'no-cache',
    'x-content-type-options': 'nosniff',
    'muster-correlation': reply.request.id,
    ...(etag !== undefined && { etag }),
  })
  if (etag !== undefined && hasAlready(request.headers['if-none-match'], etag)) return reply.code(304).send()
  const isSent = typeof body === 'string' || body instanceof Uint8Array
  return (
    reply
      .code(status)
      .header('content-type', contentType ?? (typeof body === 'string' ? 'text/plain; charset=utf-8' : json))
      // Measured: on these bodies JSON.stringify is faster than a serialiser compiled from the schema.
      .send(isSent ? body : isPieces(body) ? Readable.from(body) : JSON.stringify(body))
  )
}

/**
 * An answer in pieces ends with its call, however that ends: it may be refused before a piece is read, and a caller may hang up. What
 * the pieces hold is free then.
 */
export const endWithReply = ({ body }: Answer, { raw }: FastifyReply): void => {
  if (typeof body === 'string' || !isPieces(body)) return
  const end = (): void => void body[Symbol.asyncIterator]().return?.()
  if (raw.closed) end()
  else raw.once('close', end)
}

const isPieces = (body: object): body is AsyncIterable<string> => Symbol.asyncIterator in body

/** RFC 9110, 13.1.2: a list, compared without regard to `W/`. */
export const hasAlready = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch !== undefined &&
  ifNoneMatch.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)

/** `path`: that of a route; left out: of the route that was found. */
export const sendRefusal = (
  options: ReplyOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  decided: Refusal,
  path = request.is404 ? null : (request.routeOptions.url ?? null),
) => {
  const refusal = notNow(options, request) ?? decided
  options.onRefusal({
    refusal,
    principal: principalOf(request),
    source: sourceAddress(request.raw.socket),
    method: request.method,
    path,
    correlation: request.id,
  })
  const { status, headers, body } = refusalResponse(inKnownWords(refusal, request.headers))
  return reply.code(status).headers(headers).header('muster-correlation', request.id).send(body)
}

/** A mistake of the caller is refused; anything else is logged whole and answered without its cause. */
export const fail = (options: ReplyOptions, request: FastifyRequest, reply: FastifyReply, error: unknown) => {
  // The caller has closed the connection: no answer would arrive.
  if (error instanceof Error && isAborted(request.raw, error)) {
    options.onAborted(sourceAddress(request.raw.socket), principalOf(request))
    return reply.code(400).send()
  }
  const mistake = requestError(error)
  if (mistake !== null) return sendRefusal(options, request, reply, mistake)
  if (error instanceof StoreInDoubt) return sendRefusal(options, request, reply, storeInDoubt(error.message))
  if (error instanceof UpgradeUnfinished) return sendRefusal(options, request, reply, upgradeUnfinished(error.what))
  if (isKeyUnavailable(error)) {
    options.log.warn({ err: error, correlation: request.id }, 'a key that is not here could not be used')
    // Where keys are is the business of operators.
    const isOperator = principalOf(request)?.kind === 'operator'
    return sendRefusal(options, request, reply, isOperator ? keyUnavailable(error) : faultRefusal(null))
  }
  options.log.error(
    { err: error, correlation: request.id, method: request.method, path: request.routeOptions.url },
    'call failed',
  )
  return sendRefusal(options, request, reply, faultRefusal(options.trouble()))
}
