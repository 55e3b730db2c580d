// Calls to the plane with our certificate, once there is one: ordinary verification against the roots we were given.

import type { Static, TSchema } from 'typebox'
import { exchangeOn } from '#platform/http-exchange.ts'
import { connectTls, targetOf, trustTheHandshake } from '#platform/tls-client.ts'
import type { AgentDeps } from './agent-deps.ts'
import type { Identity } from './identity/credentials.ts'
import { longestAnswer, parseAnswer, type Answered } from './plane-answers.ts'
import { failureFrom, type PlaneFailure } from './plane-failure.ts'

export type PlaneCall<S extends TSchema> = {
  /** After `/v1/nodes/{id}/`. */
  readonly verb: 'confirm' | 'renew'
  readonly json: object
  readonly answer: S
}

const connectTimeoutMs = 10_000
const answerTimeoutMs = 30_000

/** Asks one address after the other until one of them answers. Every call we make may safely be repeated. */
export const callPlane = async <S extends TSchema>(
  deps: AgentDeps,
  identity: Identity,
  call: PlaneCall<S>,
): Promise<Answered<Static<S>> | PlaneFailure> => {
  let outcome: Answered<Static<S>> | PlaneFailure = { kind: 'stopped' }
  for (const base of addresses(identity.endpoints.runtime, identity.origin.url)) {
    outcome = await callAt(deps, identity, base, call)
    if (outcome.kind !== 'unreachable' && outcome.kind !== 'untrusted') break
  }
  return outcome
}

/** The address of the join string stays the last resort: names in the endpoint set may be lost. */
export const addresses = (listed: readonly string[], origin: string): readonly string[] => [
  ...new Set([...listed, origin]),
]

export const under = (base: string, path: string): string => base.replace(/\/+$/, '') + path

const callAt = async <S extends TSchema>(
  deps: AgentDeps,
  identity: Identity,
  base: string,
  call: PlaneCall<S>,
): Promise<Answered<Static<S>> | PlaneFailure> => {
  const url = new URL(under(base, `/v1/nodes/${identity.nodeId}/${call.verb}`))
  const { chainPem: cert, keyPem: key } = identity.current
  try {
    const socket = await connectTls(
      deps.timers,
      {
        ...targetOf(url),
        timeoutMs: connectTimeoutMs,
        credentials: { ca: [...identity.roots], cert, key, rejectUnauthorized: true },
        vet: trustTheHandshake,
      },
      deps.signal,
    )
    const request = {
      method: 'POST' as const,
      path: url.pathname,
      authority: url.host,
      json: call.json,
      timeoutMs: answerTimeoutMs,
      longestAnswer,
    }
    return parseAnswer(call.answer, await exchangeOn(deps.timers, socket, request, deps.signal))
  } catch (error) {
    return failureFrom(error, url.origin, deps.clock.nowMs())
  }
}
