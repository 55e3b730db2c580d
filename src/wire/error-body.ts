// How a refusal looks on the wire, on every listener and on bare sockets.

import { refusals, type Refusal } from '#domain/refusal.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { httpStatus } from './http-status.ts'
import type { ErrorBody } from './node-api.ts'

export const errorBody = (refusal: Refusal): ErrorBody => {
  const [message, hint] = refusals[refusal.code]
  const node = refusal.about?.node ?? null
  const next = node === null ? hint : hint.replace(/\bID\b/g, node)
  // Clocks count fractions of a millisecond, the schema whole ones: an agent would not know what else to make of it.
  const retryAfterMs = refusal.retryAfterMs === null ? null : Math.ceil(refusal.retryAfterMs)
  // A detail may repeat what the caller sent, and answers end up in logs.
  const detail = refusal.detail === null ? null : redactSecrets(refusal.detail)
  const body = { code: refusal.code, message, detail, next, retry_after_ms: retryAfterMs }
  if (refusal.inForceHere === undefined) return body
  const { unaware, kept } = refusal.inForceHere
  return { ...body, in_force_here: true, replicas_unaware: [...unaware], kept_in: kept }
}

export type RefusalResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const refusalResponse = (refusal: Refusal): RefusalResponse => ({
  status: httpStatus(refusal.code),
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(refusal.retryAfterMs !== null && { 'retry-after': String(Math.ceil(refusal.retryAfterMs / 1000)) }),
  },
  body: JSON.stringify(errorBody(refusal)),
})

/** The whole answer as text, for a socket that has no response object: a WebSocket upgrade, an unreadable request. */
export const refusalText = (refusal: Refusal): string => {
  const { status, headers, body } = refusalResponse(refusal)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  // The reason phrase may be left empty, the space before it may not (RFC 9112, 4).
  return `HTTP/1.1 ${status} \r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
}
