// Headers that two readers could understand differently, or that ask for what is not offered, before anything is decided
// by them. Node keeps the first of two; a proxy before the plane may have decided by the second.

import type { HttpRequest, HttpResponse } from '#platform/http-server.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

const onlyOnce = ['host', 'authorization', 'origin', 'content-type', 'expect'] as const

type Headers = Pick<HttpRequest, 'rawHeaders' | 'headers'>

export const headerMistake = ({ rawHeaders, headers }: Headers): Refusal | null => {
  const twice = repeated(rawHeaders)
  if (twice !== null) return refuse('REQUEST_INVALID', `the header ${twice} is there more than once`)
  if (headers.expect !== undefined && !awaitsContinue(headers))
    return refuse('REQUEST_INVALID', 'of Expect only 100-continue is known')
  return null
}

const repeated = (rawHeaders: readonly string[]): string | null => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!(onlyOnce as readonly string[]).includes(name)) continue
    if (seen.has(name)) return name
    seen.add(name)
  }
  return null
}

const awaitsContinue = (headers: Headers['headers']): boolean => headers.expect?.trim().toLowerCase() === '100-continue'

/** To a caller that waits with its body until it is asked for it. */
export const askForBody = (request: HttpRequest, response: HttpResponse): void => {
  if (awaitsContinue(request.headers)) response.writeContinue()
}
