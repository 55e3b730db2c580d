// Calls to the plane with our certificate, once there is one.

import { Type } from 'typebox'
import { parseIsoTime } from '#platform/clock.ts'
import { exchangeOn } from '#platform/http-exchange.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { knownCodesHeaders } from '#wire/core/newer-codes.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { ConnectingAgent } from './connect-at.ts'
import { connectAs } from './connect-plane.ts'
import { evidenceHeaders } from './evidence.ts'
import type { ClockReading } from '#agent/core/judged-clock.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { learnTime } from './learn-time.ts'
import { failureFrom, longestAnswer, parseAnswer, type Answered, type PlaneFailure } from './plane-failure.ts'
import { pathOf, type AnswerOf, type BodyOf, type Immutable, type ParamsOf } from '#wire/core/endpoint.ts'
import type { overlayStatementApi } from '#wire/fleet/overlay-statement-api.ts'
import type { identityApi } from '#wire/identity/identity-api.ts'
import type { programsApi } from '#wire/programs/programs-api.ts'
import type { taskNodeApi } from '#wire/tasks/task-node-api.ts'
import type { taskVerifiersApi } from '#wire/tasks/task-verifiers-api.ts'

/** A call of a node in its own name. */
type OwnCall =
  | (typeof identityApi)['confirm' | 'renew']
  | (typeof programsApi)['issue' | 'lists']
  | (typeof taskNodeApi)['result']
  | (typeof taskVerifiersApi)['verifiers']
  | (typeof overlayStatementApi)['current']

export type PlaneCall<E extends OwnCall> = {
  readonly endpoint: E
  /** Null for a call without a body. */
  readonly json: E extends { readonly method: 'POST' } ? Immutable<BodyOf<E>> : null
  /** Besides the node's own id. Left out where there are none. */
  readonly params?: Omit<ParamsOf<E>, 'id'>
  /** In bytes, where it may be longer than usual. */
  readonly longest?: number
}

export type CallingAgent = ConnectingAgent & Pick<AgentParts, 'signal' | 'instance' | 'config'>

const answerTimeoutMs = 30_000

/** Asks one address after the other until one of them answers. Every call we make may safely be repeated. */
export const callPlane = async <E extends OwnCall>(
  agent: CallingAgent,
  identity: Identity,
  call: PlaneCall<E>,
): Promise<Answered<AnswerOf<E>> | PlaneFailure> => {
  let outcome: Answered<AnswerOf<E>> | PlaneFailure = { kind: 'stopped' }
  for (const base of addresses(identity.endpoints.runtime, identity.origin.url)) {
    outcome = await callAt(agent, identity, base, call)
    if (outcome.kind !== 'unreachable' && outcome.kind !== 'untrusted') break
  }
  return outcome
}

/** The address of the join string stays the last resort: names in the endpoint set may be lost. */
export const addresses = (listed: readonly string[], origin: string): readonly string[] => [
  ...new Set([...listed, origin]),
]

export type AddressTurns = {
  /** Of these, the one to call now. */
  next(all: readonly string[]): string | undefined
  /** It did not answer. */
  failed(): void
}

/**
 * One address after the other; the one that worked is kept until it does not. Another set is tried from its first address on: the
 * address that worked before may be one that the plane gives up.
 */
export const addressTurns = (): AddressTurns => {
  let among = ''
  let failures = 0
  return {
    next: (all) => {
      if (all.join() !== among) failures = 0
      among = all.join()
      return all[failures % all.length]
    },
    failed: () => void failures++,
  }
}

export const under = (base: string, path: string): string => base.replace(/\/+$/, '') + path

const callAt = async <E extends OwnCall>(
  agent: CallingAgent,
  identity: Identity,
  base: string,
  { endpoint, json, params, longest = longestAnswer }: PlaneCall<E>,
): Promise<Answered<AnswerOf<E>> | PlaneFailure> => {
  const url = new URL(under(base, pathOf(endpoint, { ...params, id: identity.nodeId })))
  const { notAfterMs } = identity.current
  const connected = await connectAs(agent, identity, url, agent.signal)
  if (connected.kind !== 'connected') return connected
  const request = {
    method: endpoint.method,
    path: url.pathname,
    authority: url.host,
    json,
    headers: { ...evidenceHeaders(agent, identity), ...knownCodesHeaders },
    timeoutMs: answerTimeoutMs,
    longestAnswer: longest,
  }
  const askedAt = agent.clock.reading()
  try {
    const answer = await exchangeOn(agent.timers, connected.socket, request, agent.signal)
    const certificate = { notAfterMs, nowMs: agent.clock.nowMs() }
    const parsed = parseAnswer(endpoint, answer, { at: 'runtime', certificate })
    if (parsed.kind === 'answer') exchanged(agent, parsed.value, askedAt)
    return parsed
  } catch (error) {
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: 'runtime', address: connected.address })
  }
}

/** An answer on a verified connection also says what time it is. */
const exchanged = (agent: CallingAgent, value: unknown, askedAt: ClockReading): void => {
  const stated = matchesSchema(WithTime, value) ? parseIsoTime(value.server_time) : null
  if (stated !== null) learnTime(agent, stated, askedAt)
  agent.record.count({ kind: 'exchanged' })
}

const WithTime = Type.Object({ server_time: Type.String() })
