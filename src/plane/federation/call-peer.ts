// One call to the node listener of another domain, which is verified with the roots an operator gave for it, and no others.

import type { PeerDomain } from '#domain/federation/peer-domain.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { pathOf, type BodyOf } from '#wire/core/endpoint.ts'
import { claimApi, type ClaimsAnswer } from '#wire/federation/claim-api.ts'
import { unfitText } from '#wire/core/strict-json.ts'

/** Rejects where it did not answer, or not as it should. */
export type CallPeer = (peer: PeerDomain, statement: string, signal: AbortSignal) => Promise<ClaimsAnswer>

const timeoutMs = 10_000
const mostBytes = 256 * 1024

const { method, answer: schema } = claimApi.exchange

export const callPeer: CallPeer = async ({ url, roots }, statement, signal) => {
  const { hostname, port } = new URL(url)
  const client = openHttpClient({
    kind: 'https',
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? 443 : Number(port),
    ca: roots.join('\n'),
  })
  const stop = (): void => client.close()
  signal.addEventListener('abort', stop)
  try {
    const { status, body } = await client.send({
      method,
      path: pathOf(claimApi.exchange),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ statement } satisfies BodyOf<typeof claimApi.exchange>),
      timeoutMs,
      mostBytes,
    })
    if (status !== 200) throw new Error(`it answered ${status}${codeIn(body)}`)
    const answer: unknown = JSON.parse(body)
    if (!matchesSchema(schema, answer) || unfitText(answer) !== null) throw new Error('its answer is not one')
    return answer
  } finally {
    signal.removeEventListener('abort', stop)
    client.close()
  }
}

/** A refusal's code, and nothing else of what another domain may have written there. */
const codeIn = (body: string): string => {
  const [, code] = /"code":"([A-Z_]{1,40})"/.exec(body) ?? []
  return code === undefined ? '' : ` ${code}`
}
