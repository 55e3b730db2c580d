// Calls to the plane by a machine that shows no identity: to enroll, to recover, and to learn the time. Where the network asks
// for a certificate, the machine shows the one of its image, which is no identity.

import type { Purpose } from '#domain/recovery/failure-class.ts'
import { exchangeOn } from '#platform/http-exchange.ts'
import { knownCodesHeaders } from '#wire/core/newer-codes.ts'
import { challengeApi, type ChallengeRequest } from '#wire/identity/identity-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { Pinned } from './ask-time.ts'
import type { ConnectingAgent, ExpectedPlane } from './connect-at.ts'
import { connectPlane } from './connect-plane.ts'
import { bootstrapToShow } from './bootstrap-certificate.ts'
import { learnTime } from './learn-time.ts'
import { under } from './plane-client.ts'
import {
  failureFrom,
  longestAnswer,
  notThePlane,
  parseAnswer,
  type AgentEndpoint,
  type Answered,
  type PlaneFailure,
} from './plane-failure.ts'
import { verifyChallenge } from './statement-check.ts'
import type { ServerTrust } from './verified-connection.ts'
import { pathOf, type AnswerOf, type BodyOf, type Immutable } from '#wire/core/endpoint.ts'

export type AnonymousAgent = ConnectingAgent & Pick<AgentParts, 'signal' | 'config'>

/** The addresses, how to verify the server, and whose statements count; `pinned` null: no statement key is known yet. */
export type CallTarget = {
  readonly urls: readonly string[]
  readonly trust: ServerTrust
  readonly plane: ExpectedPlane
  readonly purpose: Purpose
  readonly pinned: Pinned | null
}

export type AnonymousCall<E extends AgentEndpoint> = {
  readonly endpoint: E
  readonly json: Immutable<BodyOf<E>>
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** Asks one address after the other until one of them answers. */
export const callAnonymously = async <E extends AgentEndpoint>(
  agent: AnonymousAgent,
  target: CallTarget,
  call: AnonymousCall<E>,
): Promise<Answered<AnswerOf<E>> | PlaneFailure> => {
  let outcome: Answered<AnswerOf<E>> | PlaneFailure = { kind: 'stopped' }
  for (const base of target.urls) {
    outcome = await callAt(agent, target, base, call)
    if (outcome.kind !== 'unreachable' && outcome.kind !== 'untrusted') break
  }
  return outcome
}

const callAt = async <E extends AgentEndpoint>(
  agent: AnonymousAgent,
  { trust, plane, purpose, pinned }: CallTarget,
  base: string,
  { endpoint, json, headers = {}, timeoutMs }: AnonymousCall<E>,
): Promise<Answered<AnswerOf<E>> | PlaneFailure> => {
  const url = new URL(under(base, pathOf(endpoint)))
  const connection = {
    url,
    trust,
    plane,
    purpose,
    client: bootstrapToShow(agent.config),
    ...(pinned === null ? {} : { pinned }),
  }
  const connected = await connectPlane(agent, connection, agent.signal)
  if (connected.kind !== 'connected') return connected
  const request = {
    ...{ method: endpoint.method, path: url.pathname, authority: url.host },
    ...{ json, headers: { ...knownCodesHeaders, ...headers }, timeoutMs, longestAnswer },
  }
  try {
    const answer = await exchangeOn(agent.timers, connected.socket, request, agent.signal)
    return parseAnswer(endpoint, answer, { at: purpose, certificate: null })
  } catch (error) {
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: purpose, address: connected.address })
  }
}

/** `timeMs`: the plane's time; null: no key was known to verify the challenge with, or the clock jumped meanwhile. */
export type Challenged = { readonly kind: 'challenge'; readonly challenge: string; readonly timeMs: number | null }

const nonceBytes = 24
const challengeTimeoutMs = 15_000

/** Also corrects the judged clock. `node`: the node the challenge is for; null: any node. */
export const askChallenge = async (
  agent: AnonymousAgent,
  target: CallTarget,
  node: string | null,
): Promise<Challenged | PlaneFailure> => {
  const nonce = agent.random.bytes(nonceBytes).toString('base64url')
  const json: ChallengeRequest = { nonce, ...(node === null ? {} : { node_id: node }) }
  const askedAt = agent.clock.reading()
  const answer = await callAnonymously(agent, target, {
    endpoint: challengeApi.challenge,
    json,
    timeoutMs: challengeTimeoutMs,
  })
  if (answer.kind !== 'answer') return answer
  const { challenge } = answer.value
  if (target.pinned === null) return { kind: 'challenge', challenge, timeMs: null }
  const checked = verifyChallenge(challenge, { ...target.pinned, nonce, node })
  if (checked === null) {
    const where = target.urls[0] ?? 'The server'
    return notThePlane(where, 'its challenge is not signed by a key that was pinned', 'STATEMENT_KEY', target.purpose)
  }
  const isLearned = learnTime(agent, checked.timeMs, askedAt)
  return { kind: 'challenge', challenge, timeMs: isLearned ? checked.timeMs : null }
}

/** An older plane does not have this call; that is no failure. */
export const isUnknownAddress = (failure: PlaneFailure): boolean =>
  failure.kind === 'refused' && (failure.retry === 'no-such-call' || failure.retry === 'unknown-address')
