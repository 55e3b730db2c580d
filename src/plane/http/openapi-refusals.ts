// Which refusals a call can be answered with, by status. Derived from what the call declares, so that no list of them can go stale:
// a status stands for every code of the refusal table that has it.

import { refusals, type RefusalCode } from '#domain/core/refusal-table.ts'
import type { Endpoint } from '#wire/core/endpoint.ts'
import { EmptyRequest, ReasonRequest } from '#wire/core/shapes.ts'

type Json = Record<string, unknown>
type Status = 400 | 401 | 403 | 404 | 409 | 413 | 416 | 421 | 429 | 503

const described: Readonly<Record<Status, { readonly name: string; readonly what: string }>> = {
  400: { name: 'BadRequest', what: 'The request does not fit its schema, or a value in it cannot be used' },
  401: { name: 'Unauthenticated', what: 'No operator key or client certificate, or none that is known here' },
  403: { name: 'Forbidden', what: 'The caller is known, and may not do this' },
  404: { name: 'NotFound', what: 'What the request names does not exist' },
  409: { name: 'Conflict', what: 'The state of what the request names does not allow it' },
  413: { name: 'TooLarge', what: 'The body is longer than 64 KiB' },
  416: { name: 'RangeNotSatisfiable', what: 'The range lies beyond the end; Content-Range has the length' },
  421: { name: 'WrongHost', what: 'The Host or Origin is not one that this listener answers' },
  429: { name: 'TooManyRequests', what: 'Too many attempts: wait for the time in Retry-After' },
  503: { name: 'Unavailable', what: 'Not now: try again, after the time in Retry-After where there is one' },
}
const statuses = Object.keys(described).map(Number) as Status[]

const codesWith = (status: Status): RefusalCode[] =>
  (Object.keys(refusals) as RefusalCode[]).filter((code) => refusals[code].status === status)

/** The components that the answers of calls refer to. */
export const refusalResponses = (): Json =>
  Object.fromEntries(
    statuses.map((status) => [
      described[status].name,
      {
        description: `${described[status].what}. One of ${codesWith(status)
          .map((code) => `\`${code}\``)
          .join(', ')}.`,
        headers: { 'Retry-After': { description: 'Seconds, where waiting helps', schema: { type: 'integer' } } },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } },
      },
    ]),
  )

export const refusalsOf = (declared: Endpoint, byOperators: boolean): Json =>
  Object.fromEntries(
    statuses
      .filter((status) => canGive(status, declared, byOperators))
      .map((status) => [status, { $ref: `#/components/responses/${described[status].name}` }]),
  )

/** Bodies that name nothing which might not exist. */
const namelessBodies: ReadonlySet<unknown> = new Set([EmptyRequest, ReasonRequest])

const canGive = (status: Status, declared: Endpoint, byOperators: boolean): boolean => {
  const { method, access, params, query, body, always } = declared
  const isAnonymous = access === 'anyone'
  switch (status) {
    // The rules on headers hold for every call.
    case 400:
      return true
    case 401:
      return !isAnonymous
    // Every key has the role of a viewer. Machines without a certificate prove themselves by their body.
    case 403:
      return isAnonymous ? body !== undefined : access !== 'viewer'
    // Operators name nodes, profiles and vClusters in addresses, filters and bodies.
    case 404: {
      const isNamedInBody = body !== undefined && !namelessBodies.has(body)
      return params !== undefined || (byOperators && (query !== undefined || isNamedInBody))
    }
    case 409:
      return method !== 'GET' || declared.kind === 'upgrade'
    case 413:
      return body !== undefined
    case 416:
      return declared.file !== undefined
    case 421:
      return byOperators
    // Guessed keys, and what machines may ask for in a while.
    case 429:
      return !isAnonymous || body !== undefined
    case 503:
      return always !== true
  }
}
