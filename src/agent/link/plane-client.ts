// Calls to the plane with our certificate, once there is one.

import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { parseIsoTime } from '#platform/clock.ts'
import { exchangeOn } from '#platform/http-exchange.ts'
import { knownCodesHeaders } from '#wire/core/newer-codes.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { ConnectingAgent } from './connect-at.ts'
import { connectPlane } from './connect-plane.ts'
import { evidenceHeaders } from './evidence.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { learnTime } from './learn-time.ts'
import { failureFrom, longestAnswer, parseAnswer, type Answered, type PlaneFailure } from './plane-failure.ts'

export type PlaneCall<S extends TSchema> = {
  /** After `/v1/nodes/{id}/`. */
  readonly verb: 'confirm' | 'renew'
  readonly json: object
  readonly answer: S
}

export type CallingAgent = ConnectingAgent & Pick<AgentParts, 'signal' | 'instance' | 'config'>

const answerTimeoutMs = 30_000

/** Asks one address after the other until one of them answers. Every call we make may safely be repeated. */
export const callPlane = async <S extends TSchema>(
  agent: CallingAgent,
  identity: Identity,
  call: PlaneCall<S>,
): Promise<Answered<Static<S>> | PlaneFailure> => {
  let outcome: Answered<Static<S>> | PlaneFailure = { kind: 'stopped' }
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

export const under = (base: string, path: string): string => base.replace(/\/+$/, '') + path

const callAt = async <S extends TSchema>(
  agent: CallingAgent,
  identity: Identity,
  base: string,
  call: PlaneCall<S>,
): Promise<Answered<Static<S>> | PlaneFailure> => {
  const url = new URL(under(base, `/v1/nodes/${identity.nodeId}/${call.verb}`))
  const { chainPem: certPem, keyPem, notAfterMs } = identity.current
  const trust = { kind: 'roots', roots: identity.roots } as const
  const connected = await connectPlane(agent, { url, trust, client: { certPem, keyPem } }, agent.signal)
  if (connected.kind !== 'connected') return connected
  const request = {
    method: 'POST' as const,
    path: url.pathname,
    authority: url.host,
    json: call.json,
    headers: { ...evidenceHeaders(agent, identity), ...knownCodesHeaders },
    timeoutMs: answerTimeoutMs,
    longestAnswer,
  }
  try {
    const answer = await exchangeOn(agent.timers, connected.socket, request, agent.signal)
    const certificate = { notAfterMs, nowMs: agent.clock.nowMs() }
    const parsed = parseAnswer(call.answer, answer, { at: 'runtime', certificate })
    if (parsed.kind === 'answer') exchanged(agent, parsed.value)
    return parsed
  } catch (error) {
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: 'runtime', address: connected.address })
  }
}

/** An answer on a verified connection also says what time it is. */
const exchanged = (agent: CallingAgent, value: unknown): void => {
  const stated = Value.Check(WithTime, value) ? parseIsoTime(value.server_time) : null
  if (stated !== null) learnTime(agent, stated)
  agent.record.count({ kind: 'exchanged' })
}

const WithTime = Type.Object({ server_time: Type.String() })
