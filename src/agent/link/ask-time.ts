// What time is it? Asked of a server that may be the plane but cannot be judged, because the clock is in doubt. The answer
// counts only with the signature of a key that was pinned at enrollment, over the nonce we have just made.

import { exchangeOn } from '#platform/http-exchange.ts'
import type { TlsSocket } from '#platform/tls-client.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { challengeApi, type ChallengeRequest } from '#wire/identity/identity-api.ts'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import { verifyChallenge, type Expected } from './statement-check.ts'
import { pathOf } from '#wire/core/endpoint.ts'

/** Whose statements count. */
export type Pinned = Pick<Expected, 'domain' | 'statementKeys'>

const withinMs = 10_000
const longestAnswer = 8 * 1024
const nonceBytes = 24

/** Null: it said nothing that can be believed. The connection is closed afterwards. */
export const askTime = async (
  { timers, random }: Pick<AgentCore, 'timers' | 'random'>,
  socket: TlsSocket,
  url: URL,
  pinned: Pinned,
  signal: AbortSignal,
): Promise<number | null> => {
  const nonce = random.bytes(nonceBytes).toString('base64url')
  const json: ChallengeRequest = { nonce }
  const { method, answer: schema } = challengeApi.challenge
  const call = { method, path: challengePath(url), authority: url.host, json, longestAnswer }
  try {
    const answer = await exchangeOn(timers, socket, { ...call, timeoutMs: withinMs }, signal)
    const said: unknown = answer.status === 200 ? JSON.parse(answer.body) : null
    if (!matchesSchema(schema, said)) return null
    return verifyChallenge(said.challenge, { ...pinned, nonce, node: null })?.timeMs ?? null
  } catch {
    return null
  }
}

/** A plane may be served under a path. */
const challengePath = ({ pathname }: URL): string =>
  pathname.replace(/\/v1\/.*$/, '').replace(/\/+$/, '') + pathOf(challengeApi.challenge)
