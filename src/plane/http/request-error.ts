// Errors that Fastify throws before a handler runs: the caller's mistakes become refusals, the rest are faults.

import { boundedText } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { errno } from '#platform/files.ts'
import type { HttpRequest } from '#platform/http-server.ts'

/** Whether that error is the end of its connection before the whole request was there. */
export const isAborted = (request: HttpRequest, error: Error): boolean =>
  !request.complete && request.destroyed && (request.errored === error || errno(error) === 'ECONNRESET')

type SchemaError = {
  readonly keyword: string
  readonly instancePath: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Null: nothing the caller did. */
export const requestError = (error: unknown): Refusal | null => {
  if (!(error instanceof Error)) return null
  if ('validation' in error && Array.isArray(error.validation)) {
    const place = 'validationContext' in error ? String(error.validationContext) : 'request'
    const first = error.validation[0] as SchemaError | undefined
    return first === undefined ? refuse('REQUEST_INVALID') : schemaRefusal(place, first)
  }
  const code = 'code' in error ? String(error.code) : ''
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refuse('TOO_LARGE')
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return refuse('NOT_FOUND')
  if (code === 'FST_ERR_BAD_URL') return refuse('REQUEST_INVALID', 'the address is not valid percent-encoding')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return refuse('REQUEST_INVALID', 'the body has to be application/json')
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return refuse('REQUEST_INVALID', 'the body is empty')
  // A body cut short, of another length than announced, not JSON, or naming __proto__.
  const byParser = code.startsWith('FST_ERR_CTP_') || error instanceof SyntaxError
  if (byParser && 'statusCode' in error && error.statusCode === 400)
    return refuse('REQUEST_INVALID', 'the body is not acceptable JSON')
  return null
}

const schemaRefusal = (place: string, error: SchemaError): Refusal => {
  const refusal = refuse('REQUEST_INVALID', boundedText(schemaDetail(place, error)))
  const { additionalProperty, missingProperty } = error.params
  const named = [additionalProperty, missingProperty].filter((name) => typeof name === 'string')
  const path = [...error.instancePath.split('/').slice(1), ...named].join('.')
  if (path === '') return refusal
  return { ...refusal, field: { path: boundedText(path, 128), unknown: error.keyword === 'additionalProperties' } }
}

const schemaDetail = (place: string, error: SchemaError): string => {
  const where = `${place === 'querystring' ? 'query' : place}${error.instancePath}`
  switch (error.keyword) {
    case 'additionalProperties':
      return `${where} has a field that is not known: ${String(error.params['additionalProperty'])}`
    case 'enum':
      return `${where} has to be one of: ${(error.params['allowedValues'] as readonly unknown[]).join(', ')}`
    default:
      return `${where} ${error.message ?? 'does not fit'}`
  }
}
