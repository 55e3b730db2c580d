// The two ways out of a call: its answer, or a refusal that everybody concerned hears of.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Principal } from '#domain/principal.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Log } from '#platform/log.ts'
import { refusalResponse } from '#wire/error-body.ts'
import { requestError } from './request-error.ts'
import type { Answer } from './route.ts'
import { sourceAddress } from './source-address.ts'

export type ReplyOptions = {
  /** Null while the store can be written to; decides what a fault is called. */
  readonly trouble: () => string | null
  /** Hears of every refusal, in the turn in which it is answered. */
  readonly onRefusal: (refused: Refused) => void
  readonly log: Log
}

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

export const sendAnswer = (reply: FastifyReply, { status, body, contentType }: Answer): FastifyReply =>
  reply
    .code(status)
    .headers({
      'content-type': contentType ?? (typeof body === 'string' ? 'text/plain; charset=utf-8' : json),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'muster-correlation': reply.request.id,
    })
    // Measured: on these bodies JSON.stringify is faster than a serialiser compiled from the schema.
    .send(typeof body === 'string' ? body : JSON.stringify(body))

export const sendRefusal = (options: ReplyOptions, request: FastifyRequest, reply: FastifyReply, refusal: Refusal) => {
  options.onRefusal({
    refusal,
    principal: principalOf(request),
    source: sourceAddress(request.raw.socket),
    method: request.method,
    path: request.is404 ? null : (request.routeOptions.url ?? null),
    correlation: request.id,
  })
  const { status, headers, body } = refusalResponse(refusal)
  return reply.code(status).headers(headers).header('muster-correlation', request.id).send(body)
}

/** A mistake of the caller is refused; anything else is logged whole and answered without a word about its cause. */
export const fail = (options: ReplyOptions, request: FastifyRequest, reply: FastifyReply, error: unknown) => {
  const mistake = requestError(error)
  if (mistake !== null) return sendRefusal(options, request, reply, mistake)
  options.log.error(
    { err: error, correlation: request.id, method: request.method, path: request.routeOptions.url },
    'call failed',
  )
  return sendRefusal(options, request, reply, refuse(options.trouble() === null ? 'UNAVAILABLE' : 'DISK_TROUBLE'))
}
